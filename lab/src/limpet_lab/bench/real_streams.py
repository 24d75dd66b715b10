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
    half_life_to_step,
    score_exponential_gaussian,
    score_half_space_trees,
    score_window_gaussian,
)
from limpet_lab.bench._measurement import Figure

TITLE = "labelled windows of NAB with one threshold for all series, on the rank of the score; rows ranked by AUC"
DETECTOR_LABEL = "Detector()"
WARMUP_ROWS, TREES_WARMUP_ROWS = 50, 250  # rows whose score is replaced by the next one
SKAB_FIRST_SCORED_ROW = 100  # before, every method is still finding its scale

Scorer = Callable[[FloatArray], FloatArray]


def measure(quick: bool) -> list[Figure]:
    """Measure all 24 series and the 13 real ones, quick only these; then THYROID, SMTP and SKAB."""
    streams = load_nab()
    real_series = [stream for stream in streams if stream.name.startswith("NAB real")]
    multivariate_methods: dict[str, Scorer] = {
        DETECTOR_LABEL: compute_detector_score,
        "EW Gaussian, step .01": partial(score_exponential_gaussian, step=0.01),
        "EW Gaussian, half-life 200": partial(score_exponential_gaussian, step=half_life_to_step(200)),
    }
    methods = multivariate_methods | {
        "Gaussian of the last 500": partial(score_window_gaussian, rows=500),
        "Gaussian of the last 6400": partial(score_window_gaussian, rows=6400),
        "river's HalfSpaceTrees": score_half_space_trees,
    }
    chosen = real_series if quick else streams
    scores = {name: {stream.name: score(stream.y) for stream in chosen} for name, score in methods.items()}
    figures = []
    for title, group in (("24 series", streams), ("13 real series", real_series)):
        if len(group) <= len(chosen):
            figures += make_window_figures(title, group, scores)
    return figures + make_row_figures(multivariate_methods)


def compute_detector_score(y: FloatArray) -> FloatArray:
    """Compute the score of a Detector with its defaults."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LimpetWarning)
        return Detector().process(y).score


def make_window_figures(
    title: str, streams: Sequence[Stream], scores: dict[str, dict[str, FloatArray]]
) -> list[Figure]:
    """Return NAB's score and the areas, the Detector first; the goal is the best of the others."""
    table = {
        name: score_windows(streams, scores_of_method, get_warmup_rows(name))
        for name, scores_of_method in scores.items()
    }
    figures = []
    for metric in table[DETECTOR_LABEL]:
        best_baseline = max(values[metric] for name, values in table.items() if name != DETECTOR_LABEL)
        for name, values in table.items():
            goal = best_baseline if name == DETECTOR_LABEL else None
            figures.append(Figure(f"{title}, {metric}: {name}", values[metric], at_least=goal))
    return figures


def score_windows(streams: Sequence[Stream], scores: dict[str, FloatArray], warm_up: int) -> dict[str, float]:
    """Compute NAB's score of the rank onset, and the share of windows hit against false alarms in 1000 rows."""
    settled = [drop_probation(scores[stream.name], warm_up) for stream in streams]
    onset, rank = (
        [rank_onset(scores_of_stream) for scores_of_stream in settled],
        [running_rank(scores_of_stream) for scores_of_stream in settled],
    )
    labels, splits = [], []
    for stream in streams:
        assert stream.labels is not None
        assert stream.split is not None
        labels.append(stream.labels)
        splits.append(stream.split)
    return {
        "NAB score": nab_score(onset, labels, splits),
        "windows hit, alarms ≤ 2": detection_auc(onset, labels, splits, 2.0),
        "windows hit, alarms ≤ 5": detection_auc(onset, labels, splits, 5.0),
        "windows hit, rows ≤ 20": detection_auc(rank, labels, splits, 20.0),
    }


def get_warmup_rows(name: str) -> int:
    """Return the rows without a score; of river's trees those of their first window."""
    return TREES_WARMUP_ROWS if "Trees" in name else WARMUP_ROWS


def make_row_figures(methods: dict[str, Scorer]) -> list[Figure]:
    """Return the AUC of the rows of THYROID, SMTP and SKAB."""
    thyroid, smtp = load_thyroid(), load_smtp()
    skab = [stream for group in SKAB_GROUPS for stream in load_skab(group)]
    figures = []
    for title, streams, goal in (
        ("THYROID, AUC of rows from 2000 on", [thyroid], 0.982),
        ("SMTP, AUC of rows from 40 000 on", [smtp], 0.86),
        (f"SKAB, mean AUC of rows from {SKAB_FIRST_SCORED_ROW} on, 34 streams", skab, None),
    ):
        for name, score in methods.items():
            area = float(np.mean([compute_row_auc(score, stream) for stream in streams]))
            figures.append(Figure(f"{title}: {name}", area, at_least=goal if name == DETECTOR_LABEL else None))
    return figures


def compute_row_auc(score: Scorer, stream: Stream) -> float:
    """Compute the AUC of the scored rows of one stream."""
    assert stream.labels is not None
    first = SKAB_FIRST_SCORED_ROW if stream.split is None else stream.split
    return roc_auc(score(stream.y)[first:], stream.labels[first:])
