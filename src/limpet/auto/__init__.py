"""Automatic learner: density scorers, expert ensemble, season, initialization, re-initialization."""
