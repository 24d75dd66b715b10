"""Anomalies of real streams: Detector with its defaults, against Gaussians that forget and river's trees."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from limpet.datasets import Stream, load_nab, load_skab, load_smtp, load_thyroid
from limpet.datasets.loaders import SKAB_GROUPS
from limpet.exceptions import LimpetWarning
from limpet.learners import Detector
from limpet.metrics import detection_auc, drop_probation, nab_score, rank_onset, roc_auc, running_rank
from limpet_lab.baselines.scorers import (
    FloatArray,
    exponential_gaussian,
    half_space_trees,
    step_of_half_life,
    window_gaussian,
)
from limpet_lab.bench._measurement import Figure

TITLE = "labelled windows of NAB with one threshold for all series, on the rank of the score; rows ranked by AUC"
OURS = "Detector()"
WARM_UP, WARM_UP_OF_TREES = 50, 250  # rows whose score is replaced by the next one
FIRST_SCORED_OF_SKAB = 100  # before, every method is still finding its scale

Scorer = Callable[[FloatArray], FloatArray]


def measure(quick: bool) -> list[Figure]:
    """All 24 series and the 13 real ones, quick only these; then THYROID, SMTP and SKAB."""
    streams = load_nab()
    real = [stream for stream in streams if stream.name.startswith("NAB real")]
    of_any_dimension: dict[str, Scorer] = {
        OURS: score_of_sra,
        "EW Gaussian, step .01": partial(exponential_gaussian, step=0.01),
        "EW Gaussian, half-life 200": partial(exponential_gaussian, step=step_of_half_life(200)),
    }
    methods = of_any_dimension | {
        "Gaussian of the last 500": partial(window_gaussian, rows=500),
        "Gaussian of the last 6400": partial(window_gaussian, rows=6400),
        "river's HalfSpaceTrees": half_space_trees,
    }
    chosen = real if quick else streams
    scores = {name: {stream.name: score(stream.y) for stream in chosen} for name, score in methods.items()}
    figures = []
    for title, some in (("24 series", streams), ("13 real series", real)):
        if len(some) <= len(chosen):
            figures += figures_of_windows(title, some, scores)
    return figures + figures_of_rows(of_any_dimension)


def score_of_sra(y: FloatArray) -> FloatArray:
    """The score of the learner as it comes, with nothing set."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LimpetWarning)
        return Detector().process(y).score


def figures_of_windows(title: str, streams: Sequence[Stream], scores: dict[str, dict[str, FloatArray]]) -> list[Figure]:
    """NAB's score and the areas, ours first; the goal is the best of the others."""
    table = {name: windows_found(streams, of_method, warm_up_of(name)) for name, of_method in scores.items()}
    figures = []
    for metric in table[OURS]:
        best = max(values[metric] for name, values in table.items() if name != OURS)
        for name, values in table.items():
            goal = best if name == OURS else None
            figures.append(Figure(f"{title}, {metric}: {name}", values[metric], at_least=goal))
    return figures


def windows_found(streams: Sequence[Stream], scores: dict[str, FloatArray], warm_up: int) -> dict[str, float]:
    """NAB's score of the rank onset, and the share of windows hit against false alarms in 1000 rows."""
    settled = [drop_probation(scores[stream.name], warm_up) for stream in streams]
    onset, rank = [rank_onset(each) for each in settled], [running_rank(each) for each in settled]
    labels, firsts = [], []
    for stream in streams:
        assert stream.labels is not None
        assert stream.split is not None
        labels.append(stream.labels)
        firsts.append(stream.split)
    return {
        "NAB score": nab_score(onset, labels, firsts),
        "windows hit, alarms ≤ 2": detection_auc(onset, labels, firsts, 2.0),
        "windows hit, alarms ≤ 5": detection_auc(onset, labels, firsts, 5.0),
        "windows hit, rows ≤ 20": detection_auc(rank, labels, firsts, 20.0),
    }


def warm_up_of(name: str) -> int:
    """River's trees return no scores before their first window is full."""
    return WARM_UP_OF_TREES if "Trees" in name else WARM_UP


def figures_of_rows(methods: dict[str, Scorer]) -> list[Figure]:
    """The AUC of the rows of THYROID, SMTP and SKAB."""
    thyroid, smtp = load_thyroid(), load_smtp()
    skab = [stream for group in SKAB_GROUPS for stream in load_skab(group)]
    figures = []
    for title, streams, goal in (
        ("THYROID, AUC of rows from 2000 on", [thyroid], 0.982),
        ("SMTP, AUC of rows from 40 000 on", [smtp], 0.86),
        (f"SKAB, mean AUC of rows from {FIRST_SCORED_OF_SKAB} on, 34 streams", skab, None),
    ):
        for name, score in methods.items():
            area = float(np.mean([area_of_rows(score, stream) for stream in streams]))
            figures.append(Figure(f"{title}: {name}", area, at_least=goal if name == OURS else None))
    return figures


def area_of_rows(score: Scorer, stream: Stream) -> float:
    """The AUC of the scored rows of one stream."""
    assert stream.labels is not None
    first = FIRST_SCORED_OF_SKAB if stream.split is None else stream.split
    return roc_auc(score(stream.y)[first:], stream.labels[first:])
