"""Well-log: AUCs for five annotations, ROC curves, and the information of the training span."""

from __future__ import annotations

from functools import partial

import numpy as np

from limpet.datasets import Stream, load_well_log
from limpet.metrics import benefit_auc, benefit_roc
from limpet.report.html import Picture
from limpet.tuning import Setting, SweepResult
from limpet_lab.paper import grids
from limpet_lab.paper._real_tables import RealTable, make_tuning_picture
from limpet_lab.paper._results import Result
from limpet_lab.paper._select import choose_setting
from limpet_lab.paper.context import TOLERANCE_ROWS, ExperimentContext
from limpet_lab.paper.methods import (
    DummyMethod,
    FloatArray,
    LearnerMethod,
    Method,
    make_detector_method,
    make_drift_methods,
    make_iem,
    make_sdem,
    make_sem,
    make_sra,
)
from limpet_lab.plots.roc import draw_curves

TITLE = "Well-log: AUC for five annotations"
KEY = "auc_well_log"
FIRST_SCORED_ROW = 19  # the paper's t = 20
ANNOTATIONS = (1, 2, 3, 4, 5)
COLUMNS = [f"annotation_{n}" for n in ANNOTATIONS]
TRAIN_INDEX, TEST_INDEX = 0, 1


def make_well_log_methods() -> list[Method]:
    """Return one Gaussian for each learner, started on 20 points drawn in the range of y_20 … y_40."""
    return [
        LearnerMethod("SRA", grids.SRA_WELL_LOG, make_sra, starts_on_drawn_points=True),
        make_detector_method(),
        LearnerMethod("SRA-small-gamma", grids.SRA_WELL_LOG_SMALL, make_sra, starts_on_drawn_points=True),
        LearnerMethod("SDEM", grids.SDEM_WELL_LOG, make_sdem, starts_on_drawn_points=True),
        LearnerMethod("iEM", [{"n_components": 1}], make_iem, starts_on_drawn_points=True),
        LearnerMethod("sEM", grids.SEM_WELL_LOG, make_sem, starts_on_drawn_points=True),
        *make_drift_methods(grids.KSWIN_WELL_LOG, grids.PH_WELL_LOG, grids.ADWIN),
    ]


def run(context: ExperimentContext) -> Result:
    """Settings chosen on the first 1550 rows, for each annotation separately; scored on the rest."""
    stream = load_well_log()
    methods = make_well_log_methods()
    table = RealTable(KEY, COLUMNS)
    sweeps: dict[str, SweepResult] = {}
    curves: dict[str, dict[str, tuple[FloatArray, FloatArray]]] = {column: {} for column in COLUMNS}
    for method in methods:
        sweep = sweeps[method.name] = context.run_sweep(
            method, [stream], partial(measure, method), context.plan.restarts
        )
        values = sweep.values[:, 0]  # settings, restarts, variables, annotations, train or test
        for i, column in enumerate(COLUMNS):
            testing = values[..., i, TEST_INDEX]
            best = table.add_tuned(column, method, sweep, values[..., i, TRAIN_INDEX], testing)
            if method.name == "SRA":
                table.add_fixed("SRA-figure", column, method, grids.SRA_WELL_LOG_FIGURE, testing)
                joint = choose_setting(method, sweep, values[..., TRAIN_INDEX].mean(axis=-1))
                table.fill_cell("SRA-joint", column, joint, testing)
            if not isinstance(method, DummyMethod) and method.name != "SRA-small-gamma":
                scores = method.run(best.setting, stream, 0).scores[:, best.variable]
                curve = benefit_roc(scores, get_change_points(stream)[i], TOLERANCE_ROWS, stream.split)
                curves[column][method.name] = (curve.false_alarm_rate, curve.recall)
    caption = (
        f"Mean ± standard deviation over {context.plan.restarts} restarts, T_b = {TOLERANCE_ROWS}; rows from 1550 on. "
        "Detector starts on the stream’s own first rows and has no restarts."
    )
    result = table.make_result(TITLE, caption)
    result.parts = [
        *result.parts,
        _explain(sweeps["SRA"], methods[0]),
        _make_tuning_picture(sweeps, methods),
        Picture(
            draw_curves({column.replace("_", " "): curves_of_column for column, curves_of_column in curves.items()}),
            "ROC curves of the methods on the test span, one panel for each annotation.",
            "Recalled benefit against false alarms on the test span, with the settings chosen on the training span.",
        ),
        "Why the baselines differ from the paper’s. With one component SDEM’s smoothing does nothing, so that SDEM is "
        "sEM here; both take the smallest rate of their grid in training, where the paper’s took a larger one. The "
        "paper’s Page–Hinkley sums values of about 100 000 with δ ≤ 10 and ranks rows by number: compare the dummy "
        "“time”. River’s subtracts the mean; with its default threshold of 50, in raw units, it is reset every few "
        "rows, and without one it is competitive.",
        "A change at t lends its benefit to rows on both sides; that of t = 1525 reaches into the test span and counts "
        "there for every method. The paper reads the annotators’ indices as if they counted from 1, six rows early: "
        "kept here for comparison; load_well_log('tcpd') has them as they were meant.",
    ]
    return result


def get_change_points(stream: Stream) -> list[list[int]]:
    """Return the change points of each annotation."""
    assert isinstance(stream.change_points, dict)
    return [stream.change_points[n] for n in ANNOTATIONS]


def measure(method: Method, setting: Setting, stream: Stream, restart: int) -> FloatArray:
    """Return (variables, annotations, 2): AUC on the training span and on the test span."""
    spans = ((FIRST_SCORED_ROW, stream.split), (stream.split, None))
    scores = method.run(setting, stream, restart).scores
    return np.array(
        [
            [[benefit_auc(s, rows, TOLERANCE_ROWS, *span) for span in spans] for rows in get_change_points(stream)]
            for s in scores.T
        ]
    )


def _explain(sweep: SweepResult, ours: Method) -> str:
    """Describe what the training span determines: the setting chosen, and the one of the paper."""
    averages = sweep.values[:, 0, :, 0, 0].mean(axis=1)  # settings, train or test; annotation 1
    best = int(np.argmax(averages[:, TRAIN_INDEX]))
    named = list(ours.settings).index(grids.SRA_PRINTED[KEY][COLUMNS[0]])
    low, high = averages[:, TRAIN_INDEX].min(), averages[:, TRAIN_INDEX].max()
    return (
        "SRA is tuned as the paper tunes it, for each annotation separately, among all settings that the paper "
        f"prints, on a span with one to three changes. For annotation 1 their training AUCs lie between {low:.3f} and "
        f"{high:.3f}; the setting chosen has {averages[best, TRAIN_INDEX]:.3f} there and "
        f"{averages[best, TEST_INDEX]:.3f} on the test span, the one the paper names "
        f"{averages[named, TRAIN_INDEX]:.3f} and {averages[named, TEST_INDEX]:.3f}. "
        "SRA-printed is what the paper reports as the choice of its training (γ = 2·10⁶, which rejects nothing), "
        "SRA-figure the setting of its figure (γ = 2·10⁴, which rejects what lies outside). SRA-joint has one setting "
        "for the stream, the one with the best training AUC on average over the five annotations: not the paper’s "
        "rule, but a steadier one. SRA-small-gamma is tuned for each annotation on the text’s grid with γ a hundred "
        "times smaller, at the figure’s scale; those settings are printed nowhere."
    )


def _make_tuning_picture(sweeps: dict[str, SweepResult], methods: list[Method]) -> Picture:
    """Draw training AUC against test AUC for every setting of the learners."""
    panels = {
        column: {
            method.name: sweeps[method.name].values[:, 0, :, 0, i].mean(axis=1)
            for method in methods
            if isinstance(method, LearnerMethod) and method.name != "SRA-small-gamma"
        }
        for i, column in enumerate(COLUMNS)
    }
    return make_tuning_picture(KEY, panels)
