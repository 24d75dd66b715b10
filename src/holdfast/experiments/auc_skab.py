"""SKAB: AUCs for T_b = 20 and 50, trained on eight streams and tested on the eight others."""

from __future__ import annotations

from functools import partial

import numpy as np

from holdfast.datasets import Stream, load_skab
from holdfast.experiments import grids
from holdfast.experiments.choosing import written
from holdfast.experiments.lab import Lab
from holdfast.experiments.methods import Learner, Method, detectors, iem, sdem, sem, sra
from holdfast.experiments.real_tables import RealTable
from holdfast.experiments.result import Result
from holdfast.experiments.starts import FloatArray
from holdfast.metrics import benefit_auc
from holdfast.tuning import Setting

TITLE = "SKAB: AUC for T_b = 20 and 50"
KEY = "auc_skab"
TOLERANCES = (20, 50)
COLUMNS = [f"Tb_{tolerance}" for tolerance in TOLERANCES]
FIRST_SCORED = 19  # the paper's t = 20
STANDARDISED_ON = 20  # rows; the paper says 100, its notebooks take 20
TRAIN, TEST = slice(0, None, 2), slice(1, None, 2)  # "odd" counts from 1: files 0, 2, … train


def skab_methods() -> list[Method]:
    """One Gaussian in eight dimensions for each learner; a detector for each sensor."""
    return [
        Learner("SRA", grids.SRA_SKAB, sra, drawn=True),
        Learner("SDEM", grids.SDEM_SKAB, sdem, drawn=True),
        Learner("iEM", [{"n_components": 1}], iem, drawn=True),
        Learner("sEM", grids.SEM_SKAB, sem, drawn=True),
        *detectors(grids.KSWIN_SKAB, grids.PH_REAL, grids.ADWIN),
    ]


def run(lab: Lab) -> Result:
    """Settings, and for a detector the sensor, chosen on the training streams; scored on the test streams."""
    streams = load_skab("valve1", standardise=STANDARDISED_ON)
    table = RealTable(KEY, COLUMNS)
    restarts = lab.plan.restarts_on_skab
    for method in skab_methods():
        sweep = lab.sweep(method, streams, partial(measure, method), restarts)
        for place, column in enumerate(COLUMNS):
            values = sweep.values[..., place]  # settings, streams, restarts, variables
            table.add(column, method, sweep, values[:, TRAIN], values[:, TEST].mean(axis=2))
    result = table.result(
        TITLE,
        f"Mean ± standard deviation over the eight test streams, each the average of {restarts} restarts; variables "
        f"standardised on their first {STANDARDISED_ON} rows.",
    )
    result.parts = [
        *result.parts,
        "How to read it. With eight test streams and two changes in each, the standard deviations are as large as "
        "all differences between the learners. The changes lie in the second half of every stream, so that the row "
        "number itself, the dummy “time”, does better than any learner; the paper’s Page–Hinkley, whose sum grows "
        "with a drifting sensor, does as well as that and for the same reason.",
        "With one component SDEM’s smoothing does nothing, so that SDEM is sEM here.",
        _why(streams),
    ]
    return result


def measure(method: Method, setting: Setting, stream: Stream, restart: int) -> FloatArray:
    """(variables, tolerances): the AUC of each column of scores."""
    assert isinstance(stream.change_points, list)
    scores = method.run(setting, stream, restart).scores
    return np.array([[benefit_auc(s, stream.change_points, b, FIRST_SCORED) for b in TOLERANCES] for s in scores.T])


def _why(streams: list[Stream]) -> str:
    """In words, with figures: what the threshold does, on test streams with outliers and without."""
    named = grids.SRA_PRINTED[KEY][COLUMNS[0]]
    rho = written(Learner("SRA", [], sra), named)["rho"]
    with_threshold = Learner("SRA", [], sra, drawn=True)
    without = Learner("sEM", [], sem, drawn=True)
    areas: dict[bool, list[list[float]]] = {True: [], False: []}
    dropped = []
    for stream in streams[TEST]:
        assert isinstance(stream.change_points, list)
        ours = with_threshold.run(named, stream, 0).scores[:, 0]
        theirs = without.run({"n_components": 1, "rho": rho}, stream, 0).scores[:, 0]
        dropped.append(int(np.isnan(ours).sum()))
        both = [benefit_auc(s, stream.change_points, TOLERANCES[1], FIRST_SCORED) for s in (ours, theirs)]
        areas[dropped[-1] > 0].append(both)
    (ours, theirs), (same, as_well) = (np.mean(areas[hit], axis=0) for hit in (True, False))
    return (
        f"Why SRA is not ahead. With the setting the paper names it drops at most {max(dropped)} rows of a stream, "
        "those in which Current and Voltage were exchanged. On the test streams that have none, SRA and sEM with the "
        f"same step are the same ({same:.3f} and {as_well:.3f} for T_b = 50). On those that have some, sEM learns "
        "them, its covariance jumps, and all later rows score higher than the earlier ones; as the changes come "
        f"later too, this pays: {theirs:.3f} against {ours:.3f}. It is the clock again."
    )
