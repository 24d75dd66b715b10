"""SKAB: AUCs for T_b = 20 and 50, trained on eight streams and tested on the eight others."""

from __future__ import annotations

from functools import partial

import numpy as np

from limpet.datasets import Stream, load_skab
from limpet.metrics import benefit_auc
from limpet.tuning import Setting
from limpet_lab.paper import grids
from limpet_lab.paper._real_tables import RealTable
from limpet_lab.paper._results import Result
from limpet_lab.paper.context import Lab
from limpet_lab.paper.methods import (
    FloatArray,
    Learner,
    Method,
    detectors,
    iem,
    limpet_detector,
    sdem,
    sem,
    shown_auto,
    sra,
)

TITLE = "SKAB: AUC for T_b = 20 and 50"
KEY = "auc_skab"
TOLERANCES = (20, 50)
COLUMNS = [f"Tb_{tolerance}" for tolerance in TOLERANCES]
FIRST_SCORED = 19  # the paper's t = 20
STANDARDISED_ON = 20  # rows; 100 in the paper, its notebooks take 20
TRAIN, TEST = slice(0, None, 2), slice(1, None, 2)  # "odd" counts from 1: files 0, 2, … train


def skab_methods(quick: bool = False) -> list[Method]:
    """One Gaussian in eight dimensions for each learner; a detector for each sensor."""
    methods = [
        Learner("SRA", grids.SRA_SKAB, sra, drawn=True),
        limpet_detector(),
        Learner("SDEM", grids.SDEM_SKAB, sdem, drawn=True),
        Learner("iEM", [{"n_components": 1}], iem, drawn=True),
        Learner("sEM", grids.SEM_SKAB, sem, drawn=True),
        *detectors(grids.KSWIN_SKAB, grids.PH_REAL, grids.ADWIN),
    ]
    return shown_auto(methods, 8, quick)


def run(lab: Lab) -> Result:
    """Settings, and for a detector the sensor, chosen on the training streams; scored on the test streams."""
    streams = load_skab("valve1", standardize=STANDARDISED_ON)
    table = RealTable(KEY, COLUMNS)
    restarts = lab.plan.restarts_on_skab
    for method in skab_methods(lab.plan.quick):
        sweep = lab.sweep(method, streams, partial(measure, method), restarts)
        for i, column in enumerate(COLUMNS):
            values = sweep.values[..., i]  # settings, streams, restarts, variables
            table.add(column, method, sweep, values[:, TRAIN], values[:, TEST].mean(axis=2))
    result = table.result(
        TITLE,
        f"Mean ± standard deviation over the eight test streams, each the average of {restarts} restarts; variables "
        f"standardised on their first {STANDARDISED_ON} rows. Detector starts on each stream’s own first 50 rows: it "
        "has no restarts, and for it these rows do not count.",
    )
    result.parts = [
        *result.parts,
        "How to read it. With eight test streams and two changes in each, the standard deviations are as large as all "
        f"differences between the learners. The changes lie late, {_describe_change_points(streams)} through each "
        "stream, so that the row number itself, the dummy “time”, ranks rows near a change above most others. The "
        "paper’s Page–Hinkley, whose sum mostly grows, is close to that clock.",
        "With one component SDEM’s smoothing does nothing, so that SDEM is sEM here.",
        _why(table, streams),
    ]
    return result


def measure(method: Method, setting: Setting, stream: Stream, restart: int) -> FloatArray:
    """(variables, tolerances): the AUC of each column of scores."""
    assert isinstance(stream.change_points, list)
    scores = method.run(setting, stream, restart).scores
    return np.array([[benefit_auc(s, stream.change_points, b, FIRST_SCORED) for b in TOLERANCES] for s in scores.T])


def _why(table: RealTable, streams: list[Stream]) -> str:
    """In words, with figures: what the threshold does on test streams that have outliers, and on those without."""
    column, tolerance = COLUMNS[1], TOLERANCES[1]
    methods = {method.name: method for method in skab_methods()}
    areas: dict[bool, list[list[float]]] = {True: [], False: []}
    most = 0
    for stream in streams[TEST]:
        assert isinstance(stream.change_points, list)
        scores = {n: methods[n].run(table.choices[column][n].setting, stream, 0).scores[:, 0] for n in ("SRA", "sEM")}
        rejected = int(np.isnan(scores["SRA"]).sum())
        most = max(most, rejected)
        areas[rejected > 0].append(
            [benefit_auc(s, stream.change_points, tolerance, FIRST_SCORED) for s in scores.values()]
        )
    if not all(areas.values()):
        return f"SRA rejects at most {most} rows of a stream."
    hit, clean = (np.mean(areas[has_outliers], axis=0) for has_outliers in (True, False))
    return (
        f"Why SRA is not ahead of sEM. It rejects at most {most} rows of a stream, those in which Current and Voltage "
        f"were exchanged. On the {len(areas[False])} test streams that have none the two are nearly level "
        f"({clean[0]:.3f} and {clean[1]:.3f} for T_b = {tolerance}). On the {len(areas[True])} others sEM learns "
        "those rows, its covariance jumps by orders of magnitude, and its scores stay raised for a while; the "
        f"changes come late in the stream as well, and so this pays: {hit[1]:.3f} against {hit[0]:.3f}."
    )


def _describe_change_points(streams: list[Stream]) -> str:
    """Where in the streams the changes lie, in words."""
    fractions = []
    for stream in streams:
        assert isinstance(stream.change_points, list)
        fractions += [row / len(stream) for row in stream.change_points]
    return f"between {min(fractions):.0%} and {max(fractions):.0%} of the way"
