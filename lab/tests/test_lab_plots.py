"""The pictures of the paper's experiments: PNGs, not blank, equal for equal input, and honest about bad input."""

import io
import math
import sys

import numpy as np
import pytest

from limpet.datasets import Stream
from limpet.exceptions import InvalidInputError, MissingExtraError
from limpet_lab.plots.annotations import draw_annotations
from limpet_lab.plots.axes import format_number
from limpet_lab.plots.estimates import draw_estimates
from limpet_lab.plots.illustration import draw_illustration
from limpet_lab.plots.method_styles import METHOD_STYLES, get_styles
from limpet_lab.plots.multivariate import compute_envelope, draw_channels
from limpet_lab.plots.roc import draw_curves
from limpet_lab.plots.sample_streams import draw_samples
from limpet_lab.plots.small_multiples import draw_panels
from limpet_lab.plots.timing import draw_times, format_time
from limpet_lab.plots.train_test import draw_train_against_test

Image = pytest.importorskip("PIL.Image")
pytest.importorskip("matplotlib")

N_ROWS = 300
RNG = np.random.default_rng(0)
IS_OUTLIER = RNG.random(N_ROWS) < 0.05
Y = np.where(np.arange(N_ROWS) < 150, 0.0, 2.0) + 0.2 * RNG.standard_normal(N_ROWS)
Y[IS_OUTLIER] += 50.0
SCORE_WITH_MISSING = np.where(RNG.random(N_ROWS) < 0.3, np.nan, np.abs(Y))
MEANS = np.stack([Y, -Y], axis=1)
METHOD_NAMES = ["SRA", "SDEM", "iEM", "sEM", "ADWIN", "KSWIN", "PH"]
UNKNOWN_NAMES = ["SRA-heldout", "PH-river", "random", "constant", "IsolationForest", "unknown", ""]
RISING_CURVE = np.linspace(0.0, 1.0, 20)


def make_stream(dim, **known):
    return Stream(np.stack([Y] * dim, axis=1), name=f"{dim}-D", **known)


def make_wild_score():
    score = np.abs(Y).copy()
    score[[3, 100]] = [1e12, -1e12]
    return score


DRAWINGS_BY_CASE = {
    "samples, one variable": lambda: draw_samples(
        [make_stream(1, outliers=IS_OUTLIER, change_points=[150])] * 2, reach=50
    ),
    "samples, three variables": lambda: draw_samples(
        [make_stream(3, outliers=IS_OUTLIER, change_points=[150]), make_stream(3, change_points=[40, 150])], reach=50
    ),
    "samples of every kind": lambda: draw_samples(
        [
            make_stream(1),
            make_stream(2, outliers=np.ones(N_ROWS)),
            make_stream(3),
            make_stream(1, change_points={1: [5], "b": [5, 9]}),
        ]
    ),
    "panels": lambda: draw_panels([1, 3, 5], {"S": {"SRA": [1e-5, 0.1, 3.0], "sEM": [1, 1, 1]}}, x_label="γ", mark=3),
    "panels with error bars": lambda: draw_panels(
        [0.9, 0.99],
        {t: dict.fromkeys(METHOD_NAMES + UNKNOWN_NAMES, (1.0, 1.1)) for t in "abcdefgh"},
        x_label="α",
        spread={"a": {"SRA": [0.5, 2.0]}, "b": {"SRA": [math.nan, 0.1]}},
    ),
    "panels with gaps": lambda: draw_panels(
        [1, 2, 3], {"a": {"SRA": [math.nan, 0.0, -1.0], "x": [1, math.nan, 2]}, "b": {}}, x_label="x"
    ),
    "panels of nothing": lambda: draw_panels([1, 2], {"a": {"SRA": [math.nan] * 2}}, x_label="x", log=False),
    "panels, linear": lambda: draw_panels([1, 2], {"a": {"SRA": [-1.0, 0.0]}}, x_label="x", log=False),
    "panels, constant": lambda: draw_panels([1, 2], {"a": {"SRA": [0.25, 0.25]}}, x_label="x"),
    "times": lambda: draw_times(
        dict.fromkeys(METHOD_NAMES, 3.0) | {"iEM": 1e-3, "KSWIN": 9000.0},
        dict.fromkeys(METHOD_NAMES, (0.01, 0.02, 5.0)),
    ),
    "times, some missing": lambda: draw_times({"SRA": math.nan, "odd": 0.0}, {"else": [0.0, 2.0], "SRA": []}),
    "annotations": lambda: draw_annotations(Y, {1: [30, 150], 2: [], "three": [150]}, split=100),
    "annotations of a column": lambda: draw_annotations(1e5 * Y[:, None], {1: [0]}),
    "curves": lambda: draw_curves(
        {f"{a}": dict.fromkeys(METHOD_NAMES, (RISING_CURVE, RISING_CURVE**0.3)) for a in range(5)}
    ),
    "curves of the unknown": lambda: draw_curves(
        {"a": dict.fromkeys(UNKNOWN_NAMES, (RISING_CURVE, RISING_CURVE)), "b": {}}
    ),
    "curves with gaps": lambda: draw_curves({"a": {"SRA": ([0.0, math.nan, 1.0], [0.0, 0.5, 1.0]), "PH": ([], [])}}),
    "followed": lambda: draw_estimates(
        Y, {"SRA": (MEANS, SCORE_WITH_MISSING), "sEM": (Y, make_wild_score())}, change_points=[150], outliers=IS_OUTLIER
    ),
    "followed, no estimate": lambda: draw_estimates(
        Y[:, None], {"odd": (np.full(N_ROWS, np.nan), np.full(N_ROWS, np.nan))}, change_points=[], score_label="p"
    ),
    "followed, infinite": lambda: draw_estimates(
        Y, {"PH": (MEANS[:, :, None], np.where(IS_OUTLIER, np.inf, 0.0))}, change_points=[0]
    ),
    "illustration": lambda: draw_illustration(
        Y, {"a": np.zeros(N_ROWS), "b": MEANS, "c": Y}, change_point=150, outliers=IS_OUTLIER, truth=np.zeros(N_ROWS)
    ),
    "illustration of one": lambda: draw_illustration(Y, {"a": Y}, change_point=1, outliers=np.zeros(N_ROWS)),
    "channels": lambda: draw_channels(
        MEANS,
        names=["up", "down"],
        lines=[150],
        spans=[(150, 160, "transition"), (160, N_ROWS, "abnormal"), (0, 9, "start")],
        outliers={1: [3, 200]},
    ),
    "channels, long": lambda: draw_channels(
        np.tile(np.stack([Y, SCORE_WITH_MISSING, Y], axis=1), (40, 1)), names=list("abc"), lines=range(0, 6000, 300)
    ),
    "train against test": lambda: draw_train_against_test(
        {a: dict.fromkeys([*METHOD_NAMES, "new"], (RISING_CURVE, RISING_CURVE[::-1])) for a in "abcd"},
        chosen={"a": {"SRA": (0.9, 0.5), "absent": (0.1, 0.1)}},
        paper={"a": 0.7},
    ),
    "train against test, gaps": lambda: draw_train_against_test(
        {"a": {"SRA": ([math.nan, 0.5], [0.5, 0.5])}, "b": {"PH": ([], [])}}
    ),
}


@pytest.mark.parametrize("draw", DRAWINGS_BY_CASE.values(), ids=DRAWINGS_BY_CASE)
def test_drawing_is_a_reproducible_png_that_is_not_blank(draw, recwarn):
    png = draw()
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    assert picture.width == 1440
    assert 300 < picture.height < 2500
    pixels = np.asarray(picture).reshape(-1, 3).astype(np.int32)
    assert len(np.unique(pixels @ [1, 256, 65536])) > 20
    assert 0.005 < np.any(pixels < 250, axis=1).mean() < 0.7
    assert draw() == png
    assert not [f"{warning.category.__name__}: {warning.message}" for warning in recwarn]


def has_color(png, color):
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)
    wanted = [int(color[at : at + 2], 16) for at in (1, 3, 5)]
    return bool((np.abs(pixels - wanted).sum(axis=-1) < 12).any())


def test_single_outlier_is_drawn_in_its_color():
    spans = [(0, 50, "transition"), (50, 100, "abnormal")]
    bare = {"names": list("abcd"), "lines": [100], "spans": spans}
    y = np.stack([Y, MEANS[:, 1], np.abs(SCORE_WITH_MISSING), Y], axis=1)
    assert has_color(draw_channels(y, outliers={2: [7]}, **bare), "#D55E00")
    assert not has_color(draw_channels(y, **bare), "#D55E00")


def test_requested_parts_are_drawn():
    x, panels = [1, 2], {"a": {"SRA": [1.0, 2.0]}}
    assert draw_panels(x, panels, x_label="x", mark=1) != draw_panels(x, panels, x_label="x", mark=2)
    assert draw_panels(x, panels, x_label="x") != draw_panels(x, panels, x_label="x", spread=panels)
    assert draw_annotations(Y, {1: [9]}) != draw_annotations(Y, {1: [9]}, split=50)
    assert has_color(draw_estimates(Y, {"SRA": (Y, Y)}, change_points=[9]), METHOD_STYLES["SRA"]["color"])
    curves = {"a": {name: (RISING_CURVE, RISING_CURVE**power) for power, name in enumerate(METHOD_NAMES, 1)}}
    assert all(has_color(draw_curves(curves), METHOD_STYLES[name]["color"]) for name in METHOD_NAMES)


def test_score_line_has_a_gap_at_rejected_points():
    # without a gap the line would lead through all the columns between
    score = np.where((np.arange(N_ROWS) > 100) & (np.arange(N_ROWS) < 200), np.nan, 1.0)
    png = draw_estimates(Y, {"SRA": (np.full(N_ROWS, np.nan), score)}, change_points=[])
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)[150:, 720:]  # below the titles
    blue = np.abs(pixels - [0, 0x72, 0xB2]).sum(axis=-1).min(axis=0) < 60
    columns = np.flatnonzero(blue)
    assert np.diff(columns).max() > 0.25 * (columns[-1] - columns[0])


INVALID_CALLS_BY_CASE = {
    "no streams": lambda: draw_samples([]),
    "reach of 0": lambda: draw_samples([make_stream(1)], reach=0),
    "no panels": lambda: draw_panels([1], {}, x_label="x"),
    "a short series": lambda: draw_panels([1, 2], {"a": {"SRA": [1.0]}}, x_label="x"),
    "a short error bar": lambda: draw_panels(
        [1, 2], {"a": {"SRA": [1.0, 2.0]}}, x_label="x", spread={"a": {"SRA": [1.0]}}
    ),
    "a mark elsewhere": lambda: draw_panels([1, 2], {"a": {"SRA": [1.0, 2.0]}}, x_label="x", mark=3),
    "no times": lambda: draw_times({}, {}),
    "a matrix of times": lambda: draw_times({}, {"SRA": [[1.0]]}),
    "words for times": lambda: draw_times({"SRA": "fast"}, {}),
    "no annotators": lambda: draw_annotations(Y, {}),
    "two variables": lambda: draw_annotations(MEANS, {1: [3]}),
    "a change after the end": lambda: draw_annotations(Y, {1: [N_ROWS]}),
    "a split after the end": lambda: draw_annotations(Y, {1: [3]}, split=N_ROWS),
    "no curves": lambda: draw_curves({}),
    "unequal lengths": lambda: draw_curves({"a": {"SRA": ([0.0, 1.0], [0.0])}}),
    "three series": lambda: draw_curves({"a": {"SRA": ([0.0], [0.0], [0.0])}}),
    "no rows": lambda: draw_estimates(Y, {}, change_points=[]),
    "a short score": lambda: draw_estimates(Y, {"SRA": (Y, Y[1:])}, change_points=[]),
    "short means": lambda: draw_estimates(Y, {"SRA": (MEANS[1:], Y)}, change_points=[]),
    "means of two variables": lambda: draw_estimates(Y, {"SRA": (np.zeros((N_ROWS, 2, 2)), Y)}, change_points=[]),
    "an empty stream": lambda: draw_estimates([], {"SRA": ([], [])}, change_points=[]),
    "few flags": lambda: draw_estimates(Y, {"SRA": (Y, Y)}, change_points=[], outliers=IS_OUTLIER[1:]),
    "odd flags": lambda: draw_estimates(Y, {"SRA": (Y, Y)}, change_points=[], outliers=np.full(N_ROWS, 2)),
    "no estimates": lambda: draw_illustration(Y, {}, change_point=3, outliers=IS_OUTLIER),
    "a short truth": lambda: draw_illustration(Y, {"a": Y}, change_point=3, outliers=IS_OUTLIER, truth=Y[1:]),
    "a change before the start": lambda: draw_illustration(Y, {"a": Y}, change_point=-1, outliers=IS_OUTLIER),
    "too few names": lambda: draw_channels(MEANS, names=["up"]),
    "falling lines": lambda: draw_channels(MEANS, names=["up", "down"], lines=[5, 3]),
    "a span that ends before it starts": lambda: draw_channels(MEANS, names=["up", "down"], spans=[(9, 3, "a")]),
    "an outlier in no channel": lambda: draw_channels(MEANS, names=["up", "down"], outliers={2: [3]}),
    "no data sets": lambda: draw_train_against_test({}),
    "unequal AUCs": lambda: draw_train_against_test({"a": {"SRA": (RISING_CURVE, RISING_CURVE[1:])}}),
}


@pytest.mark.parametrize("draw", INVALID_CALLS_BY_CASE.values(), ids=INVALID_CALLS_BY_CASE)
def test_invalid_input_raises(draw):
    with pytest.raises(InvalidInputError, match="got"):
        draw()


def test_drawing_requires_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'limpet\[plots\]'"):
        draw_curves({"a": {}})


def test_methods_have_different_styles():
    looks = {name: (style["color"], style["linestyle"], style["marker"]) for name, style in METHOD_STYLES.items()}
    del looks["abrupt"], looks["gradual"]  # kinds of stream, which never stand next to methods
    assert len(set(looks.values())) == len(looks)
    several = get_styles(["SRA", "SRA-heldout", "SRA-printed", "PH", "PH-river", "x", "y", "z", "w"])
    assert len({(style["color"], style["linestyle"], style["marker"]) for style in several.values()}) == 9
    assert get_styles(["x", "SRA"])["SRA"] == get_styles(["SRA"])["SRA"] == METHOD_STYLES["SRA"]


def test_open_marker_of_the_chosen_setting_is_visible():
    def blue(chosen):
        png = draw_train_against_test({"a": {"Detector": ([0.2, 0.8], [0.2, 0.8])}}, chosen=chosen)
        pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)
        return int((pixels[..., 2] - pixels[..., 0] > 120).sum())

    assert blue({"a": {"Detector": (0.5, 0.5)}}) > blue({}) + 20


def test_envelope_keeps_peaks_and_gaps():
    values = np.zeros(50_000)
    values[[17, 31_234]] = [5.0, -7.0]
    rows, heights = compute_envelope(values, 1000)
    assert len(rows) == len(heights) <= 2000
    assert (heights.max(), heights.min()) == (5.0, -7.0)
    assert np.all(np.diff(rows) >= 0)
    assert abs(rows[heights.argmin()] - 31_234) <= 50
    assert compute_envelope(values[:9], 1000)[1].tolist() == values[:9].tolist()
    gap = compute_envelope(np.where(np.arange(50_000) < 25_000, np.nan, 1.0), 1000)[1]
    assert np.isnan(gap[:1000]).all()
    assert (gap[1000:] == 1.0).all()


@pytest.mark.parametrize(
    ("number", "words"),
    [(0.0, "0"), (3.0, "3"), (0.95, "0.95"), (1000.0, "1,000"), (4e-6, "4·10⁻⁶"), (1e10, "10¹⁰"), (-2e5, "-2·10⁵")],
)
def test_numbers_are_formatted_with_powers_of_ten(number, words):
    assert format_number(number) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(2.5e-7, "250 ns"), (0.02, "20 ms"), (0.9999, "1 s"), (59.0, "59 s"), (60.0, "1 min"), (5400.0, "1.5 h")],
)
def test_times_are_formatted_with_units(seconds, words):
    assert format_time(seconds) == words
