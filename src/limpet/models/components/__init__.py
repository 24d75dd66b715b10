"""Families of mixture components: their sufficient statistics and densities."""
