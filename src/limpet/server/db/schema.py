"""Tables of the database; lists are JSON, which both databases can query."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Integer, LargeBinary, MetaData, SmallInteger, Table, Text

METADATA = MetaData()

META_TABLE = Table("meta", METADATA, Column("name", Text, primary_key=True), Column("value", Text, nullable=False))
"""The format, the configuration of the learner, the next ids, the server that owns the database."""

STREAMS_TABLE = Table(
    "streams",
    METADATA,
    Column("id", BigInteger, primary_key=True, autoincrement=False),  # never reused
    Column("key", Text, nullable=False, unique=True),
    Column("width", Integer, nullable=False),
    Column("variables", Text),  # names, if the first points have them
    Column("created", Double, nullable=False),
)

BLOCKS_TABLE = Table(
    "points",
    METADATA,
    Column("stream", BigInteger, primary_key=True, autoincrement=False),
    Column("row", BigInteger, primary_key=True, autoincrement=False),  # the first of a block
    Column("n", Integer, nullable=False),
    Column("body", Text, nullable=False),  # `PointBlock.to_json`
    sqlite_with_rowid=False,  # clusters the points of a stream
)

BUCKETS_TABLE = Table(
    "buckets",
    METADATA,
    Column("stream", BigInteger, primary_key=True, autoincrement=False),
    Column("level", SmallInteger, primary_key=True, autoincrement=False),
    Column("row", BigInteger, primary_key=True, autoincrement=False),  # the first of the bucket
    Column("n", Integer, nullable=False),
    Column("time", Text, nullable=False),
    Column("low", Text, nullable=False),
    Column("high", Text, nullable=False),
    Column("estimate", Text),
    Column("score", Double),
    Column("p_value", Double),
    Column("n_rejected", Integer, nullable=False),
    Column("outcome", SmallInteger, nullable=False),
    sqlite_with_rowid=False,
)

ALARMS_TABLE = Table(
    "alarms",
    METADATA,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("stream", BigInteger, nullable=False, index=True),
    Column("row", BigInteger, nullable=False),
    Column("record", Text, nullable=False),  # `Alarm.to_dict` and the time, as JSON
    Column("raised_at", Double, nullable=False),
    Column("acknowledged_at", Double),
    Column("note", Text, nullable=False),
)

CHECKPOINTS_TABLE = Table(
    "checkpoints",
    METADATA,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("header", Text, nullable=False),
    Column("row_counts", LargeBinary, nullable=False),  # pairs of a stream id and the number of its rows in the states
)

CHUNKS_TABLE = Table(
    "checkpoint_chunks",
    METADATA,
    Column("checkpoint", BigInteger, primary_key=True, autoincrement=False),
    Column("chunk", Integer, primary_key=True, autoincrement=False),
    Column("body", LargeBinary, nullable=False),
)

IDEMPOTENCY_TABLE = Table(
    "idempotency",
    METADATA,
    Column("key", Text, primary_key=True),
    Column("created", Double, nullable=False),
    Column("digest", Text, nullable=False),
    Column("response", Text, nullable=False),
)

SOURCE_POSITIONS_TABLE = Table(
    "sources", METADATA, Column("name", Text, primary_key=True), Column("position", Text, nullable=False)
)
