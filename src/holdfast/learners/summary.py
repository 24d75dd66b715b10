"""What a learner on autopilot has found out, in words."""

from __future__ import annotations

import math

import numpy as np

from holdfast.alarms.calibration import CALLED
from holdfast.alarms.layout import ALARMS
from holdfast.autopilot.whiteness import remembers
from holdfast.learners.pilot_engine import PilotEngine
from holdfast.scheme.state import BAD, DROPPED, SEEN
from holdfast.tradeoff import step_size

PLENTY, SURELY = 5.0, 3.0  # change alarms, besides so many times those that were promised, which are no chance any more


def summarise(engine: PilotEngine) -> str:
    """A few lines: what came, what is believed, how quickly it is learnt, and whether the promise can be kept."""
    header = engine.cell.header
    lines = [f"{int(header[SEEN])} points, {int(header[DROPPED])} dropped as outliers, {int(header[BAD])} not usable"]
    if not engine.started:
        return "\n".join([*lines, f"not started: it takes {engine.n_init} points"])
    layout, theta = engine.layout, engine.cell.theta
    if not engine.sizes.whole:
        lines.append("kept lean: alarms come from a smaller reference, and nobody looks at what the past tells")
    if engine.choice is not None:
        lines.append(f"chosen on the first {engine.n_init} points: {engine.choice}")
    deviations = np.sqrt([np.diag(covariance) for covariance in engine.estimate("covariances")])
    for weight, mean, deviation in zip(engine.estimate("weights"), engine.estimate("means"), deviations, strict=True):
        each = ", ".join(f"{m:.4g} ± {s:.3g}" for m, s in zip(mean, deviation, strict=True))
        lines.append(f"a share of {weight:.2f} at {each}" if len(deviations) > 1 else f"level {each}")
    settings = calibration(engine)
    lines.append(
        f"threshold {settings['gamma']:.3g} standard deviations; "
        f"contamination {100 * settings['contamination']:.2g} %; "
        f"scale of the tail M = {settings['M']:.3g}; remembers about {1.0 / settings['rho']:.0f} points"
    )
    rate = f"at most one false alarm in {1.0 / engine.far:,.0f} points"
    lines.append(f"promise: {rate}, for changes and for anomalies each")
    changes, called = (
        int(layout.view(theta, "changes")[ALARMS]),
        int(layout.view(theta, "called").view(np.int32)[CALLED]),
    )
    lines.append(f"raised so far: {counted(changes, 'change alarm')}, {counted(called, 'anomalous row')}")
    told = remembers(layout.view(theta, "whiteness")) if engine.sizes.whole else None
    names = engine.names or tuple(f"variable {i}" for i in range(engine.width))
    advice = [(name, each.advice(engine.lags, engine.season)) for name, each in zip(names, told or [], strict=False)]
    lines += [f"{name} {words}" for name, words in advice if words]
    if changes > PLENTY + SURELY * engine.far * header[SEEN]:
        lines.append("more alarms than a stable stream has: it keeps changing, or the promise is not for its kind")
    elif told and not any(words for _, words in advice):
        lines.append("the residuals are white: nothing speaks against the promise")
    return "\n".join(lines)


def counted(n: int, thing: str) -> str:
    """In words.

    >>> counted(1, "alarm"), counted(2, "alarm")
    ('1 alarm', '2 alarms')
    """
    return f"{n} {thing}{'s' * (n != 1)}"


def calibration(engine: PilotEngine) -> dict[str, float]:
    """γ in standard deviations, the contamination and the scale M of the tail as the stream shows them, and ρ."""
    layout, theta = engine.layout, engine.theta()
    trust, tail = layout.view(theta, "trust"), float(layout.view(theta, "tail")[0])
    gamma = math.sqrt(engine.cell.settings[0])
    tied = min(float(step_size(gamma, engine.beta, math.sqrt(tail))), 1.0) if engine.beta else 0.0
    return {
        "gamma": gamma,
        "contamination": engine.contamination,
        "M": math.sqrt(tail),
        "rho": tied or float(trust @ engine.sizes.steps),
    }
