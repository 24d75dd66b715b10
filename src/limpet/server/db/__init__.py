"""Database: streams, points, alarms and checkpoints in SQLite or PostgreSQL."""

from limpet.server.db.engine import Store

__all__ = ["Store"]
