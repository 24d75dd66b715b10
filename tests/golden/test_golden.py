"""What learners, fleets, detectors and Spark compute has the bits that it had when `digests.json` was written.

Digests are of bits. A change of results on purpose is made with `python tests/golden/compute.py --write`, with
`--spark` for what Spark computes as well, and is named in the commit and in the changelog.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from golden.compute import (
    FLEETS,
    LEARNERS,
    OTHER_COMPUTATIONS,
    SPARK,
    Digests,
    compute_fleet_digests,
    compute_learner_digests,
    compute_spark_digests,
    describe_difference,
    read_stored,
)

pytestmark = pytest.mark.filterwarnings("ignore::limpet.exceptions.LimpetWarning")

STORED = read_stored()
SLOW_TO_COMPILE = ("detector, d=3, diagonal",)  # to compile


def check(group: str, name: str, got: Digests) -> None:
    message = describe_difference(STORED[group].get(name), got)
    assert message is None, f"{group}: {name}: {message}"


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] if name in SLOW_TO_COMPILE else []) for name in LEARNERS]
)
def test_learner(name: str) -> None:
    check("learners", name, compute_learner_digests(LEARNERS[name]))


@pytest.mark.parametrize("name", FLEETS)
def test_fleet(name: str) -> None:
    check("fleets", name, compute_fleet_digests(name))


@pytest.mark.parametrize("name", OTHER_COMPUTATIONS)
def test_other(name: str) -> None:
    check("others", name, OTHER_COMPUTATIONS[name]())


@pytest.mark.spark
@pytest.mark.parametrize("name", SPARK)
def test_spark(spark: Any, name: str) -> None:
    check("spark", name, compute_spark_digests(spark, name))


@pytest.mark.parametrize("processor", ["Prescott", "Haswell", "SkylakeX"])
def test_bits_do_not_depend_on_the_kernels_of_openblas(processor: str) -> None:
    code = """if True:
        from golden.compute import LEARNERS, compute_fleet_digests, compute_learner_digests
        print(compute_fleet_digests("detector, K=2"), compute_learner_digests(LEARNERS["detector, season"]))
    """
    env = os.environ | {"OPENBLAS_CORETYPE": processor, "PYTHONPATH": os.pathsep.join(sys.path)}
    completed = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert completed.stdout.strip() == f"{STORED['fleets']['detector, K=2']} {STORED['learners']['detector, season']}"


def test_stored_and_computed_cases_are_the_same() -> None:
    groups = {"learners": LEARNERS, "fleets": FLEETS, "others": OTHER_COMPUTATIONS, "spark": SPARK}
    assert {group: set(entries) for group, entries in STORED.items()} == {
        group: set(entries) for group, entries in groups.items()
    }
