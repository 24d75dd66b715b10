"""Ingestion: learn, store and publish points from requests and sources."""
