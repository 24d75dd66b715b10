"""What is kept: streams, points, alarms and states, in SQLite or PostgreSQL through one layer."""

from holdfast.server.store.opening import Store

__all__ = ["Store"]
