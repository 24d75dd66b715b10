"""Ingestion: from posted points and sources to learned, stored and published results."""
