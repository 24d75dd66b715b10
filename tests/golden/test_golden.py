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
    OTHERS,
    SPARK,
    Digests,
    difference,
    digests_of_fleet,
    digests_of_learner,
    digests_of_spark,
    stored,
)

pytestmark = pytest.mark.filterwarnings("ignore::limpet.exceptions.LimpetWarning")

STORED = stored()
SLOW_TO_COMPILE = ("detector, d=3, diagonal",)  # to compile


def check(group: str, name: str, got: Digests) -> None:
    message = difference(STORED[group].get(name), got)
    assert message is None, f"{group}: {name}: {message}"


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] if name in SLOW_TO_COMPILE else []) for name in LEARNERS]
)
def test_learner(name: str) -> None:
    check("learners", name, digests_of_learner(LEARNERS[name]))


@pytest.mark.parametrize("name", FLEETS)
def test_fleet(name: str) -> None:
    check("fleets", name, digests_of_fleet(name))


@pytest.mark.parametrize("name", OTHERS)
def test_other(name: str) -> None:
    check("others", name, OTHERS[name]())


@pytest.mark.spark
@pytest.mark.parametrize("name", SPARK)
def test_spark(spark: Any, name: str) -> None:
    check("spark", name, digests_of_spark(spark, name))


@pytest.mark.parametrize("processor", ["Prescott", "Haswell", "SkylakeX"])
def test_bits_do_not_depend_on_the_code_that_openblas_chooses_by_the_processor(processor: str) -> None:
    code = """if True:
        from golden.compute import LEARNERS, digests_of_fleet, digests_of_learner
        print(digests_of_fleet("detector, K=2"), digests_of_learner(LEARNERS["detector, season"]))
    """
    env = os.environ | {"OPENBLAS_CORETYPE": processor, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == f"{STORED['fleets']['detector, K=2']} {STORED['learners']['detector, season']}"


def test_nothing_is_stored_that_is_not_computed() -> None:
    groups = {"learners": LEARNERS, "fleets": FLEETS, "others": OTHERS, "spark": SPARK}
    assert {group: set(entries) for group, entries in STORED.items()} == {
        group: set(entries) for group, entries in groups.items()
    }
