"""The tables. Lists are JSON in texts, so that both databases, and people with a prompt, can read them."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Integer, LargeBinary, MetaData, SmallInteger, Table, Text

METADATA = MetaData()

META_TABLE = Table("about", METADATA, Column("name", Text, primary_key=True), Column("value", Text, nullable=False))
"""The format, the settings of the learner, and the next number of a stream."""

STREAMS_TABLE = Table(
    "streams",
    METADATA,
    Column("id", BigInteger, primary_key=True, autoincrement=False),  # is never used again
    Column("key", Text, nullable=False, unique=True),
    Column("width", Integer, nullable=False),
    Column("variables", Text),  # names, if the first post had any
    Column("created", Double, nullable=False),
)

BLOCKS_TABLE = Table(
    "points",
    METADATA,
    Column("stream", BigInteger, primary_key=True, autoincrement=False),
    Column("row", BigInteger, primary_key=True, autoincrement=False),  # the first of a block
    Column("n", Integer, nullable=False),
    Column("body", Text, nullable=False),  # columns of points, see `blocks`
    sqlite_with_rowid=False,  # so that the points of a stream lie side by side
)

BUCKETS_TABLE = Table(
    "condensed",
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
    Column("fate", SmallInteger, nullable=False),
    sqlite_with_rowid=False,
)

ALARMS_TABLE = Table(
    "alarms",
    METADATA,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("stream", BigInteger, nullable=False, index=True),
    Column("kind", Text, nullable=False),
    Column("row", BigInteger, nullable=False),
    Column("onset", BigInteger, nullable=False),
    Column("size", Double),
    Column("direction", Text, nullable=False),
    Column("variables", Text, nullable=False),
    Column("p_value", Double),
    Column("time", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("raised_at", Double, nullable=False),
    Column("acknowledged_at", Double),
    Column("note", Text, nullable=False),
)

CHECKPOINTS_TABLE = Table(
    "checkpoints",
    METADATA,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("header", Text, nullable=False),
    Column("learnt", LargeBinary, nullable=False),  # pairs of a stream and how many of its rows are in the states
)

CHECKPOINT_CHUNKS_TABLE = Table(
    "states",
    METADATA,
    Column("checkpoint", BigInteger, primary_key=True, autoincrement=False),
    Column("part", Integer, primary_key=True, autoincrement=False),
    Column("body", LargeBinary, nullable=False),
)

IDEMPOTENCY_TABLE = Table(
    "posts",
    METADATA,
    Column("name", Text, primary_key=True),  # the Idempotency-Key
    Column("at", Double, nullable=False),
    Column("digest", Text, nullable=False),
    Column("answer", Text, nullable=False),
)

SOURCE_POSITIONS_TABLE = Table(
    "sources", METADATA, Column("name", Text, primary_key=True), Column("position", Text, nullable=False)
)
