"""Endpoints of the API."""
