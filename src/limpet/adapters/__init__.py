"""Adapters to the conventions of river, scikit-learn and sktime; each requires the extra of its name."""
