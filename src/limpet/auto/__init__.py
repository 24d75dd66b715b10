"""Automatic learner: scorers, ensemble, season, (re-)initialization."""
