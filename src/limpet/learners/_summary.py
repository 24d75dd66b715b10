"""What a learner on autopilot has found out, in words."""

from __future__ import annotations

import math

import numpy as np

from limpet.auto.residual_diagnostics import autocorrelation_report
from limpet.core.state import N_INVALID, N_REJECTED, N_SEEN
from limpet.detection.anomaly_detector import N_ANOMALIES
from limpet.detection.layout import N_ALARMS
from limpet.learners._auto_engine import AutoEngine
from limpet.tradeoff import step_size

MIN_EXCESS_ALARMS, EXCESS_ALARM_FACTOR = (
    5.0,
    3.0,
)  # change alarms, besides so many times those that were promised, which are no chance any more


def format_summary(engine: AutoEngine) -> str:
    """A few lines: what came, what is believed, how quickly it is learnt, and whether the promise can be kept."""
    header = engine.buffer.header
    lines = [
        f"{int(header[N_SEEN])} points, {int(header[N_REJECTED])} dropped as outliers, {int(header[N_INVALID])} not usable"
    ]
    if not engine.started:
        return "\n".join([*lines, f"not started: it takes {engine.n_init} points"])
    layout, theta = engine.layout, engine.buffer.theta
    if not engine.profile.is_full:
        lines.append("kept lean: alarms come from a smaller reference, and nobody looks at what the past tells")
    if engine.selection is not None:
        lines.append(f"chosen on the first {engine.n_init} points: {engine.selection}")
    deviations = np.sqrt([np.diag(covariance) for covariance in engine.estimate("covariances")])
    for weight, mean, deviation in zip(engine.estimate("weights"), engine.estimate("means"), deviations, strict=True):
        each = ", ".join(f"{m:.4g} ± {s:.3g}" for m, s in zip(mean, deviation, strict=True))
        lines.append(f"a share of {weight:.2f} at {each}" if len(deviations) > 1 else f"level {each}")
    settings = fitted_params(engine)
    lines.append(
        f"threshold {settings['gamma']:.3g} standard deviations; "
        f"contamination {100 * settings['contamination']:.2g} %; "
        f"scale of the tail M = {settings['M']:.3g}; remembers about {1.0 / settings['rho']:.0f} points"
    )
    rate = f"at most one false alarm in {1.0 / engine.far:,.0f} points"
    lines.append(f"promise: {rate}, for changes and for anomalies each")
    n_changes, n_anomalies = (
        int(layout.view(theta, "change_detector")[N_ALARMS]),
        int(layout.view(theta, "p_value_counts").view(np.int32)[N_ANOMALIES]),
    )
    lines.append(f"raised so far: {plural(n_changes, 'change alarm')}, {plural(n_anomalies, 'anomalous row')}")
    reports = autocorrelation_report(layout.view(theta, "residual_autocorrelation")) if engine.profile.is_full else None
    names = engine.names or tuple(f"variable {i}" for i in range(engine.width))
    advice = [(name, each.advice(engine.lags, engine.season)) for name, each in zip(names, reports or [], strict=False)]
    lines += [f"{name} {advice_text}" for name, advice_text in advice if advice_text]
    if n_changes > MIN_EXCESS_ALARMS + EXCESS_ALARM_FACTOR * engine.far * header[N_SEEN]:
        lines.append("more alarms than a stable stream has: it keeps changing, or the promise is not for its kind")
    elif reports and not any(advice_text for _, advice_text in advice):
        lines.append("the residuals are white: nothing speaks against the promise")
    return "\n".join(lines)


def plural(n: int, thing: str) -> str:
    """In words.

    >>> counted(1, "alarm"), counted(2, "alarm")
    ('1 alarm', '2 alarms')
    """
    return f"{n} {thing}{'s' * (n != 1)}"


def fitted_params(engine: AutoEngine) -> dict[str, float]:
    """γ in standard deviations, the contamination and the scale M of the tail as the stream shows them, and ρ."""
    layout, theta = engine.layout, engine.theta()
    trust, tail = layout.view(theta, "trust"), float(layout.view(theta, "tail_scale_squared")[0])
    gamma = math.sqrt(engine.buffer.settings[0])
    tied = min(float(step_size(gamma, engine.beta, math.sqrt(tail))), 1.0) if engine.beta else 0.0
    return {
        "gamma": gamma,
        "contamination": engine.contamination,
        "M": math.sqrt(tail),
        "rho": tied or float(trust @ engine.profile.step_sizes),
    }
