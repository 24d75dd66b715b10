"""What is kept: streams, points, alarms and states, in SQLite or PostgreSQL through one layer."""

from limpet.server.db.engine import Store

__all__ = ["Store"]
