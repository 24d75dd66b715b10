"""Whatever is in the data: a job on Spark goes on, says what it could not use, and leaves all columns as they are."""

from __future__ import annotations

import datetime as dt
import shutil
from collections import Counter
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import limpet as lp
from helpers.spark import PLAIN, feed, run, same_answers, source, stream_of
from limpet import spark as hs
from limpet.exceptions import CheckpointError, InvalidInputError, InvalidTypeError

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::limpet.exceptions.LimpetWarning")]
VALUES = ["a.1", "whole", "Decimal `", "flag", "small"]


def anything(n: int, texts: bool) -> pa.Table:
    """Rows of every kind that come in life, out of order, with columns of most types that Spark has."""
    rng = np.random.default_rng(n)
    keys = [None if i % 29 == 0 else int(key) for i, key in enumerate(rng.integers(-2, 4, n))]
    moments = [dt.datetime(1969, 12, 31, tzinfo=dt.UTC) + dt.timedelta(hours=float(h)) for h in rng.integers(0, 90, n)]
    numbers = rng.normal(size=n)
    numbers[::11], numbers[::13] = np.nan, np.inf
    never = [i % 23 == 0 for i in range(n)]
    columns = {
        "kéy of it": pa.array([None if key is None else f"k {key}" for key in keys])
        if texts
        else pa.array(keys, pa.int32()),
        "When?": pa.array(moments, pa.timestamp("us", "UTC"), mask=np.array(never)),
        "a.1": pa.array(numbers, mask=np.arange(n) % 17 == 0),
        "whole": pa.array([None if i % 19 == 0 else 2**53 + i for i in range(n)]),
        "Decimal `": pa.array([None if i % 3 == 0 else Decimal(i) / 100 for i in range(n)], pa.decimal128(20, 2)),
        "flag": pa.array([None if i % 5 == 0 else i % 2 == 0 for i in range(n)]),
        "small": pa.array(rng.normal(size=n), pa.float32()),
        "i": pa.array(range(n)),
        "date": pa.array([dt.date(1 + i, 1, 1) for i in range(n)], mask=np.array(never)),
        "ntz": pa.array([moment.replace(tzinfo=None) for moment in moments], pa.timestamp("us"), mask=np.array(never)),
        "bytes": pa.array([bytes([i % 256]) * (i % 3) for i in range(n)], mask=np.array(never)),
        "list": pa.array([[i, None] if i % 2 else [] for i in range(n)], mask=np.array(never)),
        "struct": pa.array([{"x": i, "y": None} for i in range(n)], pa.struct([("x", pa.int64()), ("y", pa.string())])),
        "map": pa.array([[("k", moment)] for moment in moments], pa.map_(pa.string(), pa.timestamp("us", "UTC"))),
    }
    table = pa.table(columns)
    for name in VALUES:  # rows in which nothing is known
        gone = pa.array(np.arange(n) % 31 == 0)
        table = table.set_column(
            table.schema.get_field_index(name),
            name,
            pa.compute.if_else(gone, pa.scalar(None, table[name].type), table[name]),
        )
    return table


@pytest.mark.parametrize("texts", [True, False], ids=["texts", "numbers"])
def test_any_data_is_the_fleets_and_stays_what_it_is(spark, tmp_path, texts) -> None:
    """One file is one partition, so that ties are taken as they come; in another time zone than the data's."""
    table = anything(600, texts)
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "one.parquet")
    columns = ("kéy of it", VALUES, "When?", PLAIN)
    floats = [pa.array(table[name].cast(pa.float64(), safe=False)) for name in VALUES]  # a fleet wants them exact
    plain = pa.table([table["kéy of it"], table["When?"], *floats, table["i"]], ["kéy of it", "When?", *VALUES, "i"])
    expected = lp.Fleet(PLAIN).process(plain, "kéy of it", VALUES, "When?", prefix="it`s.")
    answers = [name for name in expected.column_names if name.startswith("it`s.")]
    assert sum(expected["it`s.invalid"].to_pylist()) > 50
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        scored = hs.score(source(spark, tmp_path / "in"), *columns, prefix="it`s.", buckets=3, watermark="0 seconds")
        run(scored, tmp_path)
        batch = hs.score(spark.read.parquet(str(tmp_path / "in")), *columns, prefix="it`s.")
        batch.write.parquet(str(tmp_path / "batch"))
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    for place in ("out", "batch"):
        out = pq.read_table(tmp_path / place).sort_by("i")
        same_answers(out, expected.select([*answers, "i"]), by="i")
        assert not any(out["it`s.late"].to_pylist())
        assert (
            out.drop_columns("a.1")
            .select([c for c in table.column_names if c != "a.1"])
            .equals(table.drop_columns("a.1").cast(out.select([c for c in table.column_names if c != "a.1"]).schema))
        )
        assert repr(out["a.1"].to_pylist()) == repr(table["a.1"].to_pylist())  # NaN is no null


def test_texts_that_are_none_and_times_that_are_far_off(spark, tmp_path) -> None:
    rows = spark.sql(
        "select * from values (cast(X'ff41' as string), timestamp'9999-12-31 23:00:00', 1.0D),"
        "('é', timestamp'0001-01-01 00:00:00', 2.0D), ('', timestamp'1950-01-01', 3.0D),"
        "(repeat('k', 1000000), null, 4.0D) as t(key, time, value)"
    )
    rows.coalesce(1).write.parquet(str(tmp_path / "in"))
    scored = hs.score(source(spark, tmp_path / "in"), "key", None, "time", PLAIN, watermark="1 hour", idle="1 day")
    run(scored.drop("key"), tmp_path)
    out = pq.read_table(tmp_path / "out").sort_by("value")
    assert out["invalid"].to_pylist() == [True, False, False, True]


def test_batches_however_they_are_cut(spark, tmp_path) -> None:
    table = stream_of(n_keys=7, n=3000, seed=9)
    skewed = pa.array(["s000" if i % 3 else key for i, key in enumerate(table["sensor"].to_pylist())])
    table = table.set_column(0, "sensor", skewed)
    feed(tmp_path / "in", table, 3)
    frame = spark.read.parquet(str(tmp_path / "in"))
    expected = lp.Fleet(PLAIN).process(table, key="sensor", values=["a", "b"], time="ts")
    second = lp.Fleet(lp.SEM(rho=0.02)).process(table, key="sensor", values="a", time="ts", prefix="two_")
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        twice = hs.score(
            hs.score(frame, "sensor", ["a", "b"], "ts", PLAIN), "sensor", "a", "ts", lp.SEM(rho=0.02), prefix="two_"
        )
        twice.write.parquet(str(tmp_path / "out"))
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", "true")
    out = pq.read_table(tmp_path / "out")
    same_answers(out, expected)
    same_answers(out, second)
    counted = (
        hs.score(frame.repartition(5), "sensor", ["a", "b"], "ts", PLAIN).filter("rejected").groupBy("sensor").count()
    )
    dropped = Counter(expected.filter(expected["rejected"])["sensor"].to_pylist())
    assert {row["sensor"]: row["count"] for row in counted.collect()} == dropped
    assert len(dropped) > 3
    assert hs.score(frame.limit(0), "sensor", ["a", "b"], "ts", PLAIN).count() == 0
    fed = feed(tmp_path / "one", table, 1)  # its times are in no order
    untimed = hs.score(spark.read.parquet(str(tmp_path / "one")), "sensor", ["a", "b"], None, PLAIN)
    assert "late" not in untimed.columns
    as_they_come = lp.Fleet(PLAIN).process(fed, key="sensor", values=["a", "b"])
    assert not as_they_come.sort_by("ts")["score"].equals(expected["score"])
    same_answers(untimed.toArrow(), as_they_come)


def test_a_query_that_goes_on_after_the_answers(spark, tmp_path) -> None:
    """A window over scored rows is a second operator with a state; export finds ours, rebucket leaves it alone."""
    from pyspark.sql import functions as F

    table = stream_of(n_keys=5, n=1200, seed=10)
    feed(tmp_path / "in", table, 2)
    checkpoint = tmp_path / "checkpoint"
    scored = hs.score(
        source(spark, tmp_path / "in"),
        "sensor",
        ["a", "b"],
        "ts",
        PLAIN,
        checkpoint=checkpoint,
        buckets=2,
        watermark="1 min",
    )
    marked = hs.score(source(spark, tmp_path / "in").withWatermark("ts", "1 minute"), "sensor", ["a", "b"], "ts", PLAIN)
    with pytest.raises(Exception, match="without watermark"):  # rather than windows that never close
        run(marked.groupBy(F.window("ts", "5 minutes")).count(), tmp_path / "marked")
    windows = scored.withWatermark("ts", "1 minute").groupBy(F.window("ts", "5 minutes")).agg(F.count("*").alias("n"))
    writer = windows.writeStream.format("memory").queryName("windows").option("checkpointLocation", str(checkpoint))
    query = writer.start()
    try:
        query.processAllAvailable()
        kept = sorted(path.name for path in (checkpoint / "limpet").iterdir())
        with pytest.raises(CheckpointError, match="stop it first; nothing was changed"):
            hs.repartition(spark, str(checkpoint) + "/", 5)
        assert sorted(path.name for path in (checkpoint / "limpet").iterdir()) == kept
    finally:
        query.stop()
    counts = [row["n"] for row in spark.table("windows").orderBy("window").collect()]
    assert counts == [300, 300, 300]  # the last window is open
    fleet = lp.Fleet(PLAIN)
    fleet.process(table, key="sensor", values=["a", "b"], time="ts")
    assert sorted(hs.export_fleet(spark, checkpoint)) == sorted(fleet)
    shutil.move(checkpoint, tmp_path / "with space")
    with pytest.raises(CheckpointError, match="folder with spaces"):
        hs.export_fleet(spark, tmp_path / "with space")


def test_what_cannot_work_is_refused_before_anything_runs(spark, tmp_path) -> None:
    feed(tmp_path / "in", stream_of(n_keys=2, n=10, seed=0), 1)
    stream, frame = source(spark, tmp_path / "in"), spark.read.parquet(str(tmp_path / "in"))
    usual = {"key": "sensor", "values": ["a", "b"], "time": "ts", "model": PLAIN}
    for changed, message in (
        ({"key": "senor"}, "no column 'senor'; there are 'sensor', 'ts'"),
        ({"key": "a"}, "column 'a' holds double: keys are texts or whole numbers"),
        ({"values": ["sensor"]}, "column 'sensor' holds string, not numbers"),
        ({"values": "c"}, "no column 'c'"),
        ({"time": "a"}, "column 'a' holds double: times are"),
        ({"model": lp.StochasticApproximation(lp.models.LinearRegression())}, "LinearRegression learns from pairs"),
        ({"model": lp.SRA(gamma=4.0, rho=0.01, on_invalid="raise")}, "must not die of data"),
        ({"model": lp.SRA(n_components="auto")}, "needs to know the number of components"),
        ({"model": "SRA"}, "expected a learner"),
        ({"buckets": 0}, "buckets"),
        ({"buckets": 2_000_000}, "at most 1048576"),
        ({"prefix": None}, "prefix: expected a text"),
        ({"watermark": "soon"}, "watermark: expected a duration"),
        ({"time": "note", "watermark": "1 s"}, "watermark goes by timestamps"),
        ({"time": None, "idle": "1 s"}, "give time as well"),
        ({"idle": 5, "watermark": "1 s"}, "idle: expected a duration"),
    ):
        for df in (stream, frame):
            with pytest.raises((InvalidInputError, InvalidTypeError), match=message):
                hs.score(df, **usual | changed)
    for df, more, message in (
        (stream, {"idle": "1 day"}, "idle needs a watermark"),
        (stream.withWatermark("ts", "1 day"), {"watermark": "1 day"}, "has a watermark already"),
        (stream, {"initial": lp.Fleet(PLAIN)}, "give checkpoint as well"),
        (frame, {"initial": lp.Fleet(PLAIN)}, "initial is for a streaming DataFrame"),
        (frame, {"checkpoint": str(tmp_path)}, "checkpoint is for a streaming DataFrame"),
        (frame.withColumn("LATE", frame["a"]), {}, "has a column 'late' already: give a prefix"),
        (frame.select("*", "a"), {}, "columns have different names"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            hs.score(df, **usual | more)
    with pytest.raises(InvalidTypeError, match="expected a DataFrame of Spark, got DataFrame"):
        hs.score(frame.toPandas(), **usual)
