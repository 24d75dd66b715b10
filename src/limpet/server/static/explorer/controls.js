// The settings of one side: mode and parameters. They change the given settings object and call onChange.

import { h } from "../common/dom.js";
import { formatNumber, formatInteger } from "../common/format.js";
import { buttonGroup, selectInput, segments, slider, checkbox, numberInput } from "../common/inputs.js";
import { LIMITS, BASELINES, effectiveStep } from "./state.js";

const MIXTURE_METHODS = ["SEM", "IEM", "SDEM"];
const MAX_TIED_GAMMA = 40; // the tied step size is practically 0 beyond

/** Returns {element, show()}; `settings()` returns the object to change, `onChange()` is called after every change. */
export function createControls({ title, modes, settings, onChange, scale }) {
  const fields = {};
  const set = (name) => (value) => {
    settings()[name] = name === "components" ? Number(value) : value;
    show();
    onChange();
  };
  const field = (name, make, options) =>
    (fields[name] = make({
      ...(LIMITS[name] ? { limitMin: LIMITS[name][0], limitMax: LIMITS[name][1] } : {}),
      ...options,
      name,
      value: settings()[name],
      onchange: set(name),
    }));

  const mode = field("mode", segments, { label: "Mode", choices: modes });
  const promise = field("far", slider, {
    label: "One false alarm in",
    hint: "points: the promised false-alarm rate, for changes and for anomalies each",
    min: 1e-6,
    max: 1e-2,
    log: true,
    format: (far) => formatInteger(Math.round(1 / far)),
    parse: (points) => 1 / points,
  });
  const components = field("components", buttonGroup, {
    label: "Components",
    hint: "Gaussians of the mixture",
    choices: { 0: "auto", 1: "1", 2: "2", 3: "3", 4: "4", 5: "5" },
  });
  const gamma = field("gamma", slider, {
    label: "Robustness γ",
    hint: "points beyond this distance are rejected",
    min: 0.5,
    max: 100,
    log: true,
    endless: true,
  });
  const tied = field("tied", checkbox, { label: "ρ tied to γ by the paper's relation" });
  const rho = field("rho", slider, {
    label: "Adaptivity ρ",
    hint: "the weight of a new point: the memory is 1/ρ points",
    min: 1e-4,
    max: 0.5,
    log: true,
  });
  const beta = field("beta", slider, { label: "β", min: 1e-3, max: 1e3, log: true });
  const sharpness = field("M", slider, { label: "M", hint: "", min: 0.5, max: 50, log: true });
  const step = h("p", { class: "hint small soft numbers" });
  const norm = field("norm", selectInput, {
    label: "Unit of γ",
    choices: { whitened: "standard deviations", mean: "the paper's: means", full: "the paper's: all statistics" },
  });
  const baseline = field("baseline", selectInput, { label: "Method", choices: BASELINES });
  const season = field("season", numberInput, {
    label: "Season",
    hint: "period in rows; 0: no season",
    min: LIMITS.season[0],
    max: LIMITS.season[1],
  });
  const lags = field("lags", numberInput, {
    label: "Lags",
    hint: "previous rows that a point depends on. A new season or lag is compiled first, which takes some seconds",
    min: LIMITS.lags[0],
    max: LIMITS.lags[1],
  });
  const kswin = [
    field("alpha", slider, { label: "Level α", min: 1e-5, max: 0.1, log: true }),
    field("window", slider, { label: "Window", min: 20, max: 1000, log: true, integer: true }),
    field("stat", slider, { label: "Newest points", min: 5, max: 200, log: true, integer: true }),
  ];
  const adwin = field("delta", slider, { label: "δ", min: 1e-6, max: 0.5, log: true });
  const hinkley = [
    field("drift", slider, {
      label: "Slack δ",
      hint: "tolerance per point, in standard deviations of the noise",
      min: 0.01,
      max: 5,
      log: true,
    }),
    field("threshold", slider, {
      label: "Threshold λ",
      hint: "the sum above which a change is detected, in standard deviations of the noise",
      min: 1,
      max: 1000,
      log: true,
    }),
  ];
  const fold = h("details", { class: "fold" }, h("summary", {}, "Season and lags"), season.element, lags.element);
  const parts = {
    auto: [promise, components, { element: fold }],
    manual: [gamma, tied, rho, beta, sharpness, { element: step }, components, norm, promise],
    baseline: [baseline, components, rho, ...kswin, adwin, ...hinkley],
  };
  const all = [
    ...new Set(
      Object.values(parts)
        .flat()
        .map((part) => part.element),
    ),
  ];
  // One order for all modes, so that inputs do not move.
  const order = [
    baseline,
    gamma,
    tied,
    rho,
    beta,
    sharpness,
    { element: step },
    components,
    promise,
    ...kswin,
    adwin,
    ...hinkley,
    norm,
    { element: fold },
  ];
  const body = h(
    "div",
    { class: "fields" },
    order.map(({ element }) => element),
  );
  const element = h(
    "section",
    { class: "side-settings", "aria-label": `Settings ${title}` },
    h("div", { class: "row" }, h("h2", {}, title), mode.element),
    body,
  );

  function visible(s) {
    const ofMode = new Set(parts[s.mode].map((part) => part.element));
    const hide = (...ones) => ones.forEach((part) => ofMode.delete(part.element));
    if (s.mode === "manual") s.tied ? hide(rho) : hide(beta, sharpness, { element: step });
    if (s.mode === "baseline") {
      if (!MIXTURE_METHODS.includes(s.baseline)) hide(components);
      if (!["SEM", "SDEM"].includes(s.baseline)) hide(rho);
      if (s.baseline !== "KSWIN") hide(...kswin);
      if (s.baseline !== "ADWIN") hide(adwin);
      if (s.baseline !== "PageHinkley") hide(...hinkley);
    }
    return ofMode;
  }

  function show() {
    const s = settings();
    if (s.mode !== "auto" && s.components === 0) s.components = 1;
    if (s.mode === "manual" && s.tied && !(s.gamma <= MAX_TIED_GAMMA * scale(s))) s.gamma = 6 * scale(s);
    s.stat = Math.min(s.stat, Math.floor(s.window / 2)); // equally many are drawn from older points
    const shown = visible(s);
    all.forEach((part) => (part.hidden = !shown.has(part)));
    components.element.querySelector('[data-value="0"]').hidden = s.mode !== "auto";
    for (const [name, part] of Object.entries(fields)) part.set(s[name], ...limitsOf(name, s));
    step.textContent = `ρ =  ${formatNumber(effectiveStep(s), 3)}`;
  }

  function limitsOf(name, s) {
    if (name === "gamma") return [{ min: 0.5 * scale(s), max: 100 * scale(s) }];
    if (name === "stat") return [{ max: Math.min(200, s.window / 2), limitMax: Math.floor(s.window / 2) }];
    return [];
  }

  show();
  return { element, show };
}
