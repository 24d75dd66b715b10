"""Adapters to the conventions of river, scikit-learn and sktime.

Each requires the extra of its name.
"""
