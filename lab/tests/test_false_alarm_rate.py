"""Test the parts of `limpet bench false_alarm_rate` that a quick run leaves out."""

import math

from helpers.scripts import import_script
from limpet_lab.bench import false_alarm_rate


def test_streams_outside_the_promise_are_measured_with_default_and_suitable_settings(monkeypatch):
    families = {name: false_alarm_rate.SETTINGS_OUTSIDE_PROMISE[name] for name in ("AR(2) .5 .3", "Poisson 1")}
    monkeypatch.setattr(false_alarm_rate, "SETTINGS_OUTSIDE_PROMISE", families)
    figures = list(false_alarm_rate.measure_rates_outside_promise(2000))
    names = {figure.name for figure in figures}
    for variant in ("", ", without threshold inflation", ", with lags=2"):
        assert f"not promised: change, AR(2) .5 .3, far 0.001{variant}" in names
    assert names <= set(import_script("page_tools").load_figures("false_alarm_rate"))
    assert all(math.isfinite(figure.value) for figure in figures)


def test_early_rates_are_measured_on_many_short_streams(monkeypatch):
    monkeypatch.setattr(false_alarm_rate, "EARLY_BATCH_STREAMS", 3)
    lengths = []

    def flag_all(rows, far):
        lengths.append(len(rows))
        return false_alarm_rate.flag_alarms_without_threshold_inflation(rows, far)

    rates = false_alarm_rate.measure_rates("Gaussian", 0.05, 1, 1e-3, 1, flag_all, early=True)
    assert lengths == [false_alarm_rate.EARLY_STREAM_ROWS] * 3
    assert rates.change >= 0.0
    assert rates.anomaly == 0.0
