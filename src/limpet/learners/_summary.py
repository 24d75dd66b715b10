"""Summary of a `Detector` as text, and its fitted parameters."""

from __future__ import annotations

import math

import numpy as np

from limpet._format import plural
from limpet.auto.reinitialization import CONTAMINATION
from limpet.auto.residual_diagnostics import autocorrelation_report
from limpet.core.state import N_INVALID, N_REJECTED, N_SEEN
from limpet.detection.anomaly_detector import N_ANOMALIES
from limpet.detection.layout import N_ALARMS
from limpet.learners._auto_engine import AutoEngine
from limpet.tradeoff import step_size

MIN_EXCESS_ALARMS, EXCESS_ALARM_FACTOR = 5.0, 3.0  # more change alarms than 5 + 3 times the promised rate are excessive


def format_summary(engine: AutoEngine) -> str:
    """Return a few lines: points, estimate, alarms, and the false-alarm rate."""
    header = engine.buffer.header
    n_seen, n_rejected, n_invalid = (int(header[index]) for index in (N_SEEN, N_REJECTED, N_INVALID))
    lines = [f"{plural(n_seen, 'point')}, {n_rejected:,} rejected as outliers, {n_invalid:,} invalid"]
    if not engine.started:
        return "\n".join([*lines, f"not started: requires {plural(engine.n_init, 'point')}"])
    layout, theta = engine.layout, engine.buffer.theta
    if not engine.profile.is_full:
        lines.append('memory="compact": smaller reference sample, no residual diagnostics')
    if engine.selection is not None:
        lines.append(f"selected on the first {plural(engine.n_init, 'point')}: {engine.selection}")
    deviations = np.sqrt([np.diag(covariance) for covariance in engine.estimate("covariances")])
    for weight, mean, deviation in zip(engine.estimate("weights"), engine.estimate("means"), deviations, strict=True):
        each = ", ".join(f"{m:.4g} ± {s:.3g}" for m, s in zip(mean, deviation, strict=True))
        lines.append(f"weight {weight:.2f}, level {each}" if len(deviations) > 1 else f"level {each}")
    settings = fitted_params(engine)
    lines.append(
        f"threshold {settings['gamma']:.3g} standard deviations; "
        f"contamination {100 * settings['contamination']:.2g} %; "
        f"tail scale M = {settings['M']:.3g}; effective memory {1.0 / settings['rho']:,.0f} points"
    )
    rate = f"at most one false alarm per {1.0 / engine.far:,.0f} points"
    lines.append(f"promise: {rate}, for changes and for anomalies each")
    n_changes = int(layout.view(theta, "change_detector")[N_ALARMS])
    n_anomalies = int(layout.view(theta, "p_value_counts").view(np.int32)[N_ANOMALIES])
    lines.append(f"raised: {plural(n_changes, 'change alarm')}, {plural(n_anomalies, 'anomalous row')}")
    advice = residual_advice(engine)
    lines += advice or []
    if n_changes > MIN_EXCESS_ALARMS + EXCESS_ALARM_FACTOR * engine.far * header[N_SEEN]:
        cause = "it keeps changing, or its points are not exchangeable"
        lines.append(f"more alarms than expected for a stable stream: {cause}")
    elif advice is not None and not advice:
        lines.append("residuals are uncorrelated: the false-alarm rate should hold")
    return "\n".join(lines)


def residual_advice(engine: AutoEngine) -> list[str] | None:
    """Return advice per variable with autocorrelated residuals; None if unknown."""
    if not engine.started or not engine.profile.is_full:
        return None
    reports = autocorrelation_report(engine.layout.view(engine.buffer.theta, "residual_autocorrelation"))
    if reports is None:
        return None
    names = engine.names or tuple(f"variable {i}" for i in range(engine.width))
    advice = [report.advice(engine.lags, engine.season) for report in reports]
    return [f"{name} {text}" for name, text in zip(names, advice, strict=False) if text]


def fitted_params(engine: AutoEngine) -> dict[str, float]:
    """Return γ in standard deviations, contamination, tail scale M, and ρ."""
    layout, theta = engine.layout, engine.theta()
    trust, tail = layout.view(theta, "trust"), float(layout.view(theta, "tail_scale_squared")[0])
    gamma = math.sqrt(engine.buffer.settings[0])
    tied = min(float(step_size(gamma, engine.beta, math.sqrt(tail))), 1.0) if engine.beta else 0.0
    rho = tied or float(trust @ engine.profile.step_sizes)
    contamination = float(layout.view(theta, "reinitialization")[CONTAMINATION])  # recent share of rejected points
    return {"gamma": gamma, "contamination": contamination, "M": math.sqrt(tail), "rho": rho}
