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
from limpet_lab.paper.context import ExperimentContext
from limpet_lab.paper.methods import (
    FloatArray,
    LearnerMethod,
    Method,
    filter_detector,
    make_detector_method,
    make_drift_methods,
    make_iem,
    make_sdem,
    make_sem,
    make_sra,
)

TITLE = "SKAB: AUC for T_b = 20 and 50"
KEY = "auc_skab"
TOLERANCE_ROWS = (20, 50)
COLUMNS = [f"Tb_{tolerance}" for tolerance in TOLERANCE_ROWS]
FIRST_SCORED_ROW = 19  # the paper's t = 20
N_STANDARDIZATION_ROWS = 20  # rows; 100 in the paper, its notebooks take 20
TRAIN_FILES, TEST_FILES = slice(0, None, 2), slice(1, None, 2)  # "odd" counts from 1: files 0, 2, … train


def make_skab_methods(quick: bool = False) -> list[Method]:
    """Return one Gaussian in eight dimensions for each learner; a detector for each sensor."""
    methods = [
        LearnerMethod("SRA", grids.SRA_SKAB, make_sra, starts_on_drawn_points=True),
        make_detector_method(),
        LearnerMethod("SDEM", grids.SDEM_SKAB, make_sdem, starts_on_drawn_points=True),
        LearnerMethod("iEM", [{"n_components": 1}], make_iem, starts_on_drawn_points=True),
        LearnerMethod("sEM", grids.SEM_SKAB, make_sem, starts_on_drawn_points=True),
        *make_drift_methods(grids.KSWIN_SKAB, grids.PH_REAL, grids.ADWIN),
    ]
    return filter_detector(methods, 8, quick)


def run(context: ExperimentContext) -> Result:
    """Settings, and for a detector the sensor, chosen on the training streams; scored on the test streams."""
    streams = load_skab("valve1", standardize=N_STANDARDIZATION_ROWS)
    table = RealTable(KEY, COLUMNS)
    restarts = context.plan.restarts_on_skab
    for method in make_skab_methods(context.plan.quick):
        sweep = context.run_sweep(method, streams, partial(measure, method), restarts)
        for i, column in enumerate(COLUMNS):
            values = sweep.values[..., i]  # settings, streams, restarts, variables
            table.add_tuned(column, method, sweep, values[:, TRAIN_FILES], values[:, TEST_FILES].mean(axis=2))
    result = table.make_result(
        TITLE,
        f"Mean ± standard deviation over the eight test streams, each the average of {restarts} restarts; variables "
        f"standardised on their first {N_STANDARDIZATION_ROWS} rows. Detector starts on each stream’s own first 50 "
        "rows: it has no restarts, and for it these rows do not count.",
    )
    result.parts = [
        *result.parts,
        "How to read it. With eight test streams and two changes in each, the standard deviations are as large as all "
        f"differences between the learners. The changes lie late, {_describe_change_points(streams)} through each "
        "stream, so that the row number itself, the dummy “time”, ranks rows near a change above most others. The "
        "paper’s Page–Hinkley, whose sum mostly grows, is close to that clock.",
        "With one component SDEM’s smoothing does nothing, so that SDEM is sEM here.",
        _explain(table, streams),
    ]
    return result


def measure(method: Method, setting: Setting, stream: Stream, restart: int) -> FloatArray:
    """Return (variables, tolerances): the AUC of each column of scores."""
    assert isinstance(stream.change_points, list)
    scores = method.run(setting, stream, restart).scores
    return np.array(
        [[benefit_auc(s, stream.change_points, b, FIRST_SCORED_ROW) for b in TOLERANCE_ROWS] for s in scores.T]
    )


def _explain(table: RealTable, streams: list[Stream]) -> str:
    """Explain the effect of the threshold on test streams with outliers, and on those without."""
    column, tolerance = COLUMNS[1], TOLERANCE_ROWS[1]
    methods = {method.name: method for method in make_skab_methods()}
    areas: dict[bool, list[list[float]]] = {True: [], False: []}
    max_rejected = 0
    for stream in streams[TEST_FILES]:
        assert isinstance(stream.change_points, list)
        scores = {n: methods[n].run(table.choices[column][n].setting, stream, 0).scores[:, 0] for n in ("SRA", "sEM")}
        rejected = int(np.isnan(scores["SRA"]).sum())
        max_rejected = max(max_rejected, rejected)
        areas[rejected > 0].append(
            [benefit_auc(s, stream.change_points, tolerance, FIRST_SCORED_ROW) for s in scores.values()]
        )
    if not all(areas.values()):
        return f"SRA rejects at most {max_rejected} rows of a stream."
    hit, clean = (np.mean(areas[has_outliers], axis=0) for has_outliers in (True, False))
    return (
        f"Why SRA is not ahead of sEM. It rejects at most {max_rejected} rows of a stream, those in which Current and "
        f"Voltage were exchanged. On the {len(areas[False])} test streams that have none the two are nearly level "
        f"({clean[0]:.3f} and {clean[1]:.3f} for T_b = {tolerance}). On the {len(areas[True])} others sEM learns "
        "those rows, its covariance jumps by orders of magnitude, and its scores stay raised for a while; the "
        f"changes come late in the stream as well, and so this pays: {hit[1]:.3f} against {hit[0]:.3f}."
    )


def _describe_change_points(streams: list[Stream]) -> str:
    """Describe where in the streams the changes lie."""
    fractions = []
    for stream in streams:
        assert isinstance(stream.change_points, list)
        fractions += [row / len(stream) for row in stream.change_points]
    return f"between {min(fractions):.0%} and {max(fractions):.0%} of the way"
