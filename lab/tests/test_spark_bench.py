"""A slice of `limpet bench spark` and of `limpet bench spark_crash`."""

import random

import pyarrow as pa
import pytest

from harness import spark_job
from harness.spark_job import WITHIN, Job
from harness.spark_session import spark_session
from limpet_lab.bench import spark as bench
from limpet_lab.bench.spark_crash import JobOutput, are_columns_equal, make_figures, write_input

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::limpet.exceptions.LimpetWarning")]


@pytest.fixture(scope="module")
def spark():
    with spark_session(2, "2g") as session:
        yield session


def test_a_killed_job_resumes_with_the_same_results(spark, tmp_path) -> None:
    """Only the killed job has separate processes; the session of the tests does the rest."""
    write_input(tmp_path / "in", 4, 1000, 20)
    whole, killed = (Job(tmp_path / "in", tmp_path / name) for name in ("whole", "killed"))
    spark_job.run(spark, *map(str, (whole.source, whole.out, whole.checkpoint)))
    killed.run_with_kills(1, random.Random(0))
    assert killed.kills == [WITHIN]
    spark_job.run(spark, *map(str, (killed.source, killed.out, killed.checkpoint)))
    left = JobOutput.from_job(spark, whole)
    assert len(left.ids) == 4000
    measured = make_figures("kill -9", killed, 1, JobOutput.from_job(spark, killed), left)
    assert all(figure.is_reached for figure in measured), [figure for figure in measured if not figure.is_reached]


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        ([0.0, float("nan")], [0.0, float("nan")], True),
        ([0.0], [-0.0], False),
        ([None], [0.0], False),
        ([[{"size": 1.0}], None], [[{"size": 1.0}], None], True),
        ([[{"size": 1.0}], None], [[{"size": 1.0 + 1e-15}], None], False),
        ([[{"size": 1.0}], None], [None, [{"size": 1.0}]], False),
    ],
)
def test_columns_are_compared_bit_by_bit(left, right, equal) -> None:
    arrays = pa.array(left), pa.array(right)
    assert are_columns_equal(*arrays) is equal


def test_pass_through_stores_as_many_bytes_as_a_learner(spark, tmp_path) -> None:
    sizes = bench.Sizes(2000, (100,), (4,), (100, 4), (), 10, 1, "2g")
    times = bench.SparkBenchmark(spark, tmp_path, sizes).measure_times(bench.PLAIN_MODEL, 100, 4)
    assert all(0 < value < float("inf") for value in times.values())
    assert times["passed on"] == pytest.approx(times["held"], rel=0.01)
