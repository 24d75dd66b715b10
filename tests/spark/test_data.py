"""Unusual data: a job on Spark marks invalid rows and returns all input columns unchanged."""

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
from helpers.spark import SRA_LEARNER, assert_same_results, make_table, read_stream, run_query, write_files
from limpet import spark as ls
from limpet.exceptions import CheckpointError, InvalidInputError, InvalidTypeError

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::limpet.exceptions.LimpetWarning")]
VALUES = ["a.1", "whole", "Decimal `", "flag", "small"]


def make_mixed_table(n: int, string_keys: bool) -> pa.Table:
    """Rows of every kind, out of order, with columns of most types of Spark."""
    rng = np.random.default_rng(n)
    keys = [None if i % 29 == 0 else int(key) for i, key in enumerate(rng.integers(-2, 4, n))]
    moments = [dt.datetime(1969, 12, 31, tzinfo=dt.UTC) + dt.timedelta(hours=float(h)) for h in rng.integers(0, 90, n)]
    numbers = rng.normal(size=n)
    numbers[::11], numbers[::13] = np.nan, np.inf
    has_no_value = [i % 23 == 0 for i in range(n)]
    columns = {
        "kéy of it": pa.array([None if key is None else f"k {key}" for key in keys])
        if string_keys
        else pa.array(keys, pa.int32()),
        "When?": pa.array(moments, pa.timestamp("us", "UTC"), mask=np.array(has_no_value)),
        "a.1": pa.array(numbers, mask=np.arange(n) % 17 == 0),
        "whole": pa.array([None if i % 19 == 0 else 2**53 + i for i in range(n)]),
        "Decimal `": pa.array([None if i % 3 == 0 else Decimal(i) / 100 for i in range(n)], pa.decimal128(20, 2)),
        "flag": pa.array([None if i % 5 == 0 else i % 2 == 0 for i in range(n)]),
        "small": pa.array(rng.normal(size=n), pa.float32()),
        "i": pa.array(range(n)),
        "date": pa.array([dt.date(1 + i, 1, 1) for i in range(n)], mask=np.array(has_no_value)),
        "ntz": pa.array(
            [moment.replace(tzinfo=None) for moment in moments], pa.timestamp("us"), mask=np.array(has_no_value)
        ),
        "bytes": pa.array([bytes([i % 256]) * (i % 3) for i in range(n)], mask=np.array(has_no_value)),
        "list": pa.array([[i, None] if i % 2 else [] for i in range(n)], mask=np.array(has_no_value)),
        "struct": pa.array([{"x": i, "y": None} for i in range(n)], pa.struct([("x", pa.int64()), ("y", pa.string())])),
        "map": pa.array([[("k", moment)] for moment in moments], pa.map_(pa.string(), pa.timestamp("us", "UTC"))),
    }
    table = pa.table(columns)
    for name in VALUES:  # rows without values
        is_empty = pa.array(np.arange(n) % 31 == 0)
        table = table.set_column(
            table.schema.get_field_index(name),
            name,
            pa.compute.if_else(is_empty, pa.scalar(None, table[name].type), table[name]),
        )
    return table


@pytest.mark.parametrize("string_keys", [True, False], ids=["strings", "integers"])
def test_results_equal_a_fleet_and_input_columns_are_unchanged(spark, tmp_path, string_keys) -> None:
    """One file is one partition, so that ties are in input order; the session has another time zone than the data."""
    table = make_mixed_table(600, string_keys)
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "one.parquet")
    columns = ("kéy of it", VALUES, "When?", SRA_LEARNER)
    floats = [pa.array(table[name].cast(pa.float64(), safe=False)) for name in VALUES]  # a fleet requires float64
    plain = pa.table([table["kéy of it"], table["When?"], *floats, table["i"]], ["kéy of it", "When?", *VALUES, "i"])
    expected = lp.Fleet(SRA_LEARNER).process(plain, "kéy of it", VALUES, "When?", prefix="it`s.")
    results = [name for name in expected.column_names if name.startswith("it`s.")]
    assert sum(expected["it`s.invalid"].to_pylist()) > 50
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        scored = ls.score(
            read_stream(spark, tmp_path / "in"), *columns, prefix="it`s.", buckets=3, watermark="0 seconds"
        )
        run_query(scored, tmp_path)
        batch = ls.score(spark.read.parquet(str(tmp_path / "in")), *columns, prefix="it`s.")
        batch.write.parquet(str(tmp_path / "batch"))
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    for folder in ("out", "batch"):
        out = pq.read_table(tmp_path / folder).sort_by("i")
        assert_same_results(out, expected.select([*results, "i"]), by="i")
        assert not any(out["it`s.late"].to_pylist() + out["it`s.duplicate"].to_pylist())
        assert (
            out.drop_columns("a.1")
            .select([c for c in table.column_names if c != "a.1"])
            .equals(table.drop_columns("a.1").cast(out.select([c for c in table.column_names if c != "a.1"]).schema))
        )
        assert repr(out["a.1"].to_pylist()) == repr(table["a.1"].to_pylist())  # NaN is not null


def test_keys_that_are_not_utf8_and_extreme_times(spark, tmp_path) -> None:
    rows = spark.sql(
        "select * from values (cast(X'ff41' as string), timestamp'9999-12-31 23:00:00', 1.0D),"
        "('é', timestamp'0001-01-01 00:00:00', 2.0D), ('', timestamp'1950-01-01', 3.0D),"
        "(repeat('k', 1000000), null, 4.0D) as t(key, time, value)"
    )
    rows.coalesce(1).write.parquet(str(tmp_path / "in"))
    scored = ls.score(
        read_stream(spark, tmp_path / "in"), "key", None, "time", SRA_LEARNER, watermark="1 hour", idle_timeout="1 day"
    )
    run_query(scored.drop("key"), tmp_path)
    out = pq.read_table(tmp_path / "out").sort_by("value")
    assert out["invalid"].to_pylist() == [True, False, False, True]


def test_batches_with_any_partitioning(spark, tmp_path) -> None:
    table = make_table(n_keys=7, n=3000, seed=9)
    skewed = pa.array(["s000" if i % 3 else key for i, key in enumerate(table["sensor"].to_pylist())])
    table = table.set_column(0, "sensor", skewed)
    write_files(tmp_path / "in", table, 3)
    frame = spark.read.parquet(str(tmp_path / "in"))
    expected = lp.Fleet(SRA_LEARNER).process(table, key="sensor", values=["a", "b"], time="ts")
    second = lp.Fleet(lp.SEM(rho=0.02)).process(table, key="sensor", values="a", time="ts", prefix="two_")
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        twice = ls.score(
            ls.score(frame, "sensor", ["a", "b"], "ts", SRA_LEARNER),
            "sensor",
            "a",
            "ts",
            lp.SEM(rho=0.02),
            prefix="two_",
        )
        twice.write.parquet(str(tmp_path / "out"))
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", "true")
    out = pq.read_table(tmp_path / "out")
    assert_same_results(out, expected)
    assert_same_results(out, second)
    counted = (
        ls.score(frame.repartition(5), "sensor", ["a", "b"], "ts", SRA_LEARNER)
        .filter("rejected")
        .groupBy("sensor")
        .count()
    )
    rejected = Counter(expected.filter(expected["rejected"])["sensor"].to_pylist())
    assert {row["sensor"]: row["count"] for row in counted.collect()} == rejected
    assert len(rejected) > 3
    assert ls.score(frame.limit(0), "sensor", ["a", "b"], "ts", SRA_LEARNER).count() == 0
    shuffled = write_files(tmp_path / "one", table, 1)  # times are out of order
    untimed = ls.score(spark.read.parquet(str(tmp_path / "one")), "sensor", ["a", "b"], None, SRA_LEARNER)
    assert "late" not in untimed.columns
    in_input_order = lp.Fleet(SRA_LEARNER).process(shuffled, key="sensor", values=["a", "b"])
    assert not in_input_order.sort_by("ts")["score"].equals(expected["score"])
    assert_same_results(untimed.toArrow(), in_input_order)


def test_query_with_a_window_after_score(spark, tmp_path) -> None:
    """A window over scored rows is a second stateful operator; export selects that of score."""
    from pyspark.sql import functions as F

    table = make_table(n_keys=5, n=1200, seed=10)
    write_files(tmp_path / "in", table, 2)
    checkpoint = tmp_path / "checkpoint"
    scored = ls.score(
        read_stream(spark, tmp_path / "in"),
        "sensor",
        ["a", "b"],
        "ts",
        SRA_LEARNER,
        checkpoint=checkpoint,
        buckets=2,
        watermark="1 min",
    )
    marked = ls.score(
        read_stream(spark, tmp_path / "in").withWatermark("ts", "1 minute"), "sensor", ["a", "b"], "ts", SRA_LEARNER
    )
    with pytest.raises(Exception, match="without watermark"):  # rather than windows that never close
        run_query(marked.groupBy(F.window("ts", "5 minutes")).count(), tmp_path / "marked")
    windows = scored.withWatermark("ts", "1 minute").groupBy(F.window("ts", "5 minutes")).agg(F.count("*").alias("n"))
    writer = windows.writeStream.format("memory").queryName("windows").option("checkpointLocation", str(checkpoint))
    query = writer.start()
    try:
        query.processAllAvailable()
        files = sorted(path.name for path in (checkpoint / "limpet").iterdir())
        with pytest.raises(CheckpointError, match="got a running query"):
            ls.repartition(spark, str(checkpoint) + "/", 5)
        assert sorted(path.name for path in (checkpoint / "limpet").iterdir()) == files
    finally:
        query.stop()
    counts = [row["n"] for row in spark.table("windows").orderBy("window").collect()]
    assert counts == [300, 300, 300]  # the last window is open
    fleet = lp.Fleet(SRA_LEARNER)
    fleet.process(table, key="sensor", values=["a", "b"], time="ts")
    assert sorted(ls.export_fleet(spark, checkpoint)) == sorted(fleet)
    shutil.move(checkpoint, tmp_path / "with space")
    with pytest.raises(CheckpointError, match="without spaces"):
        ls.export_fleet(spark, tmp_path / "with space")


def test_invalid_parameters_raise_before_a_job_starts(spark, tmp_path) -> None:
    write_files(tmp_path / "in", make_table(n_keys=2, n=10, seed=0), 1)
    stream, frame = read_stream(spark, tmp_path / "in"), spark.read.parquet(str(tmp_path / "in"))
    valid = {"key": "sensor", "values": ["a", "b"], "time": "ts", "learner": SRA_LEARNER}
    for changed, message in (
        ({"key": "senor"}, "key: must be a column of the DataFrame .'sensor', 'ts', .*, got 'senor'"),
        ({"key": "a"}, "key: must be a column of strings or integers, got 'a' of double"),
        ({"values": ["sensor"]}, "values: must be numeric columns, got 'sensor' of string"),
        ({"values": "c"}, "values: must be a column .*, got 'c'"),
        ({"time": "a"}, "time: must be a column of timestamps, dates or integers, got 'a' of double"),
        ({"learner": lp.StochasticApproximation(lp.models.LinearRegression())}, "got LinearRegression"),
        ({"learner": lp.SRA(gamma=4.0, rho=0.01, on_invalid="raise")}, "on_invalid: must be 'skip'"),
        ({"learner": lp.Detector(n_components="auto")}, "n_components"),
        ({"learner": "SRA"}, "learner: must be"),
        ({"buckets": 0}, "buckets"),
        ({"buckets": 2_000_000}, "buckets: .*1048576"),
        ({"prefix": None}, "prefix: must be a string"),
        ({"watermark": "soon"}, "watermark: must be a duration"),
        ({"time": "note", "watermark": "1 s"}, "watermark: requires timestamps"),
        ({"time": None, "idle_timeout": "1 s"}, "idle_timeout: requires a column of times"),
        ({"idle_timeout": 5, "watermark": "1 s"}, "idle_timeout: must be a duration"),
    ):
        for df in (stream, frame):
            with pytest.raises((InvalidInputError, InvalidTypeError), match=message):
                ls.score(df, **valid | changed)
    for df, options, message in (
        (stream, {"idle_timeout": "1 day"}, "idle_timeout: requires a watermark"),
        (
            stream.withWatermark("ts", "1 day"),
            {"watermark": "1 day"},
            "watermark: must be None",
        ),
        (stream, {"initial": lp.Fleet(SRA_LEARNER)}, "initial: requires a checkpoint"),
        (frame, {"initial": lp.Fleet(SRA_LEARNER)}, "initial: must be None"),
        (frame, {"checkpoint": str(tmp_path)}, "checkpoint: must be None"),
        (frame.withColumn("LATE", frame["a"]), {}, "prefix: .* got the existing 'late'"),
        (frame.select("*", "a"), {}, "df: must have different column names"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            ls.score(df, **valid | options)
    with pytest.raises(InvalidTypeError, match="df: must be a DataFrame of Spark, got DataFrame"):
        ls.score(frame.toPandas(), **valid)
