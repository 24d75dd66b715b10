"""Well-log: AUCs for five annotations, ROC curves, and what the training span can tell."""

from __future__ import annotations

import numpy as np

from holdfast.datasets import Stream, load_well_log
from holdfast.experiments import grids
from holdfast.experiments.choosing import choose_setting, reasons, written
from holdfast.experiments.comparison import RIVALS, rivals_above, side_by_side, told, verdicts
from holdfast.experiments.lab import TOLERANCE, Lab
from holdfast.experiments.methods import Dummy, Learner, Method, detectors, iem, sdem, sem, sra
from holdfast.experiments.paper import paper_cells
from holdfast.experiments.result import Cell, Result, cell
from holdfast.experiments.starts import FloatArray
from holdfast.metrics import benefit_auc, benefit_roc
from holdfast.plots.curves import draw_curves
from holdfast.plots.report import Picture
from holdfast.plots.train_test import draw_train_against_test
from holdfast.tuning import Setting, Sweep, grid

TITLE = "Well-log: AUC for five annotations"
KEY = "auc_well_log"
FIRST_SCORED = 19  # the paper's t = 20
ANNOTATIONS = (1, 2, 3, 4, 5)
COLUMNS = [f"annotation_{n}" for n in ANNOTATIONS]
TRAIN, TEST = 0, 1


def well_log_methods() -> list[Method]:
    """One Gaussian for each learner, started on 20 points drawn in the range of y_20 … y_40."""
    one = {"n_components": [1]}
    return [
        Learner("SRA", [{"n_components": 1, **setting} for setting in grids.SRA_WELL_LOG], sra, drawn=True),
        Learner("SDEM", grid(r=grids.RATES_WELL_LOG, **one), sdem, drawn=True),
        Learner("iEM", grid(**one), iem, drawn=True),
        Learner("sEM", grid(rho=grids.RATES_WELL_LOG, **one), sem, drawn=True),
        *detectors(grids.KSWIN_WELL_LOG, grids.PH_WELL_LOG, grids.ADWIN),
    ]


def run(lab: Lab) -> Result:
    """Settings chosen on the first 1550 rows, for each annotation by itself; scored on the rest."""
    stream = load_well_log()
    assert isinstance(stream.change_points, dict)
    annotations = [stream.change_points[n] for n in ANNOTATIONS]
    split = stream.split

    def areas(scores: FloatArray) -> list[list[float]]:
        return [
            [
                benefit_auc(scores, changes, TOLERANCE, FIRST_SCORED, split),
                benefit_auc(scores, changes, TOLERANCE, split),
            ]
            for changes in annotations
        ]

    rows: dict[str, list[Cell]] = {}
    chosen: dict[str, dict[str, Setting]] = {column: {} for column in COLUMNS}
    result = Result(TITLE)
    sweeps: dict[str, Sweep] = {}
    curves: dict[str, dict[str, tuple[FloatArray, FloatArray]]] = {column: {} for column in COLUMNS}
    methods = well_log_methods()
    for method in methods:

        def evaluate(setting: Setting, stream: Stream, restart: int, method: Method = method) -> FloatArray:
            return np.array([areas(column) for column in method.run(setting, stream, restart).scores.T])

        sweep = sweeps[method.name] = lab.sweep(method, [stream], evaluate, lab.plan.restarts)
        values = sweep.values[:, 0, :, 0]  # settings, restarts, annotations, train or test
        rows[method.name] = []
        for place, column in enumerate(COLUMNS):
            best = choose_setting(method, sweep, values[:, :, place, [TRAIN]])
            rows[method.name].append(cell(values[best.setting, :, place, TEST]))
            chosen[column][method.name] = best.written
            if not isinstance(method, Dummy):
                scores = method.run(sweep.settings[best.setting], stream, 0).scores[:, 0]
                curve = benefit_roc(scores, annotations[place], TOLERANCE, split)
                curves[column][method.name] = (curve.false_alarm_rate, curve.recall)
        if sweep.cannot_run:
            result.cannot_run.setdefault(KEY, {})[method.name] = reasons(sweep)
    _add_named_settings(methods[0], sweeps["SRA"], rows, chosen)

    order = ["SRA", "SRA-printed", "SRA-figure"]
    rows = {name: rows[name] for name in order} | {name: cells for name, cells in rows.items() if name not in order}
    paper = paper_cells(KEY)
    records = verdicts(KEY, COLUMNS, rows["SRA"], paper["SRA"])
    named = verdicts(KEY, COLUMNS, rows["SRA-printed"], paper["SRA"])
    result.tables[KEY] = {"metrics": COLUMNS, **rows}
    result.chosen[KEY] = chosen
    result.verdicts = records
    result.parts = [
        side_by_side(
            COLUMNS,
            rows,
            paper,
            f"Mean ± standard deviation over {lab.plan.restarts} restarts, T_b = {TOLERANCE}; rows from 1550 on.",
        ),
        told(records),
        told(named).replace("SRA ", "With the setting the paper names (SRA-printed) it ", 1),
        rivals_above(COLUMNS, rows),
        _why(sweeps["SRA"], methods[0]),
        _picture_of_tuning(sweeps, chosen, methods, {c: paper["SRA"][i][0] for i, c in enumerate(COLUMNS)}),
        Picture(
            draw_curves({f"annotation {n}": curves[column] for n, column in zip(ANNOTATIONS, COLUMNS, strict=True)}),
            "ROC curves of the methods on the test span, one panel for each annotation.",
            "Recalled benefit against false alarms on the test span, with the settings chosen on the training span.",
        ),
        "With one component SDEM’s smoothing does nothing, so that SDEM is sEM here. The paper’s Page–Hinkley sums "
        "values of about 100 000 with δ ≤ 10 and is the clock: compare the dummy “time”. It says more about where "
        "the changes lie in the test span than about changes.",
        "A change at t lends its benefit to rows on both sides; that of t = 1525 reaches into the test span and counts "
        "there for every method. The paper reads the annotators’ indices as if they counted from 1, six rows early: "
        "kept here for comparison; `load_well_log('tcpd')` has them as they were meant.",
    ]
    return result


def _why(sweep: Sweep, ours: Method) -> str:
    """In words, what the training span could tell: by how little the setting chosen beats the one the paper names."""
    training = sweep.values[:, 0, :, 0, 0, TRAIN].mean(axis=1)  # of annotation 1
    named = list(ours.settings).index({"n_components": 1, **grids.SRA_PRINTED[KEY][COLUMNS[0]]})
    return (
        "SRA is tuned as the paper tunes it, for each annotation by itself, on a span with two changes of "
        "annotations 1 to 3 and one of annotation 4. The setting chosen for annotation 1 has a training AUC of "
        f"{training.max():.3f} there, the one the paper names {training[named]:.3f}: a difference that says nothing, "
        "and costs much on the test span. SRA-printed is what the paper says its training chose (γ = 2·10⁶, which "
        "drops nothing), SRA-figure the setting of its figure (γ = 2·10⁴, which drops what lies outside); neither "
        "has seen our test span."
    )


def _add_named_settings(
    ours: Method, sweep: Sweep, rows: dict[str, list[Cell]], chosen: dict[str, dict[str, Setting]]
) -> None:
    """SRA with the settings that the paper names for its table, and with that of its figure."""
    for name in ("SRA-printed", "SRA-figure"):
        rows[name] = []
        for place, column in enumerate(COLUMNS):
            named = grids.SRA_PRINTED[KEY][column] if name == "SRA-printed" else grids.SRA_WELL_LOG_FIGURE
            setting = list(ours.settings).index({"n_components": 1, **named})
            rows[name].append(cell(sweep.values[setting, 0, :, 0, place, TEST]))
            chosen[column][name] = written(ours, ours.settings[setting])


def _picture_of_tuning(
    sweeps: dict[str, Sweep],
    chosen: dict[str, dict[str, Setting]],
    methods: list[Method],
    paper: dict[str, float],
) -> Picture:
    """Training AUC against test AUC for every setting of the learners."""
    panels: dict[str, dict[str, tuple[FloatArray, FloatArray]]] = {}
    rings: dict[str, dict[str, tuple[float, float]]] = {}
    for place, column in enumerate(COLUMNS):
        panels[column], rings[column] = {}, {}
        for method in methods:
            if isinstance(method, Learner) and method.name in ("SRA", *RIVALS):
                averages = sweeps[method.name].values[:, 0, :, 0, place].mean(axis=1)
                panels[column][method.name] = (averages[:, TRAIN], averages[:, TEST])
                best = int(np.argmax(averages[:, TRAIN]))
                rings[column][method.name] = (float(averages[best, TRAIN]), float(averages[best, TEST]))
    return Picture(
        draw_train_against_test(panels, chosen=rings, paper=paper),
        "For each annotation, the training AUC of every setting against its test AUC.",
        "Every setting of the learners: AUC on the training span against AUC on the test span. Rings mark what was "
        "chosen; the dotted line is the paper’s SRA.",
    )
