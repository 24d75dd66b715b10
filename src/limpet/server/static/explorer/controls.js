// The settings of one side: mode, sliders, folds. They change the settings they are given and say so.

import { few, h, whole } from "../common.js";
import { buttons, choice, segments, slider, tick, typed } from "./fields.js";
import { LIMITS, RIVALS, stepOf } from "./state.js";

const MIXTURES = ["SEM", "IEM", "SDEM"];
const LARGEST_TIED = 40; // thresholds to which a step can be tied: beyond, it is 0 for all that matters

/** Returns {element, show()}; `settings()` gives the object to change, `changed()` is called after every change. */
export function controls({ title, modes, settings, changed, scale }) {
  const fields = {};
  const set = (name) => (value) => {
    settings()[name] = name === "components" ? Number(value) : value;
    show();
    changed();
  };
  const field = (name, make, options) =>
    (fields[name] = make({
      ...(LIMITS[name] ? { least: LIMITS[name][0], most: LIMITS[name][1] } : {}),
      ...options,
      name,
      value: settings()[name],
      onchange: set(name),
    }));

  const mode = field("mode", segments, { label: "How it is set", choices: modes });
  const promise = field("far", slider, {
    label: "One false alarm in",
    told: "points, if nothing happens: the promise, for changes and for anomalies each",
    low: 1e-6,
    high: 1e-2,
    log: true,
    shown: (far) => whole(Math.round(1 / far)),
    read: (points) => 1 / points,
  });
  const components = field("components", buttons, {
    label: "Components",
    told: "Gaussians that the stream is made of",
    choices: { 0: "auto", 1: "1", 2: "2", 3: "3", 4: "4", 5: "5" },
  });
  const gamma = field("gamma", slider, {
    label: "Robustness γ",
    told: "points farther off than this are rejected",
    low: 0.5,
    high: 100,
    log: true,
    endless: true,
  });
  const tied = field("tied", tick, { label: "ρ tied to γ by the paper's relation" });
  const rho = field("rho", slider, {
    label: "Adaptivity ρ",
    told: "the weight of a new point: 1/ρ points are remembered",
    low: 1e-4,
    high: 0.5,
    log: true,
  });
  const beta = field("beta", slider, { label: "β", low: 1e-3, high: 1e3, log: true });
  const sharpness = field("M", slider, { label: "M", told: "", low: 0.5, high: 50, log: true });
  const step = h("p", { class: "told small soft numbers" });
  const norm = field("norm", choice, {
    label: "γ counts",
    choices: { whitened: "standard deviations", mean: "the paper's: means", full: "the paper's: all statistics" },
  });
  const rival = field("rival", choice, { label: "Method", choices: RIVALS });
  const season = field("season", typed, {
    label: "Season",
    told: "rows after which things repeat themselves; 0 for none",
    low: LIMITS.season[0],
    high: LIMITS.season[1],
  });
  const lags = field("lags", typed, {
    label: "Lags",
    told: "rows back that a point depends on. A new season or lag is compiled first, which takes a while",
    low: LIMITS.lags[0],
    high: LIMITS.lags[1],
  });
  const kswin = [
    field("alpha", slider, { label: "Level α", low: 1e-5, high: 0.1, log: true }),
    field("window", slider, { label: "Window", low: 20, high: 1000, log: true, whole: true }),
    field("stat", slider, { label: "Newest points", low: 5, high: 200, log: true, whole: true }),
  ];
  const adwin = field("delta", slider, { label: "δ", low: 1e-6, high: 0.5, log: true });
  const hinkley = [
    field("drift", slider, {
      label: "Slack δ",
      told: "what is let pass at each point, in standard deviations of the noise",
      low: 0.01,
      high: 5,
      log: true,
    }),
    field("threshold", slider, {
      label: "Threshold λ",
      told: "the sum above which a change is told, in the same",
      low: 1,
      high: 1000,
      log: true,
    }),
  ];
  const fold = h("details", { class: "fold" }, h("summary", {}, "Season and lags"), season.element, lags.element);
  const parts = {
    autopilot: [promise, components, { element: fold }],
    hand: [gamma, tied, rho, beta, sharpness, { element: step }, components, norm, promise],
    rival: [rival, components, rho, ...kswin, adwin, ...hinkley],
  };
  const all = [
    ...new Set(
      Object.values(parts)
        .flat()
        .map((part) => part.element),
    ),
  ];
  // One order for all modes, so that what stays does not jump.
  const order = [
    rival,
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
    const ofMode = new Set(parts[s.mode].map((one) => one.element));
    const hide = (...ones) => ones.forEach((one) => ofMode.delete(one.element));
    if (s.mode === "hand") s.tied ? hide(rho) : hide(beta, sharpness, { element: step });
    if (s.mode === "rival") {
      if (!MIXTURES.includes(s.rival)) hide(components);
      if (!["SEM", "SDEM"].includes(s.rival)) hide(rho);
      if (s.rival !== "KSWIN") hide(...kswin);
      if (s.rival !== "ADWIN") hide(adwin);
      if (s.rival !== "PageHinkley") hide(...hinkley);
    }
    return ofMode;
  }

  function show() {
    const s = settings();
    if (s.mode !== "autopilot" && s.components === 0) s.components = 1;
    if (s.mode === "hand" && s.tied && !(s.gamma <= LARGEST_TIED * scale(s))) s.gamma = 6 * scale(s);
    s.stat = Math.min(s.stat, Math.floor(s.window / 2)); // as many are drawn from the older ones
    const shown = visible(s);
    all.forEach((one) => (one.hidden = !shown.has(one)));
    components.element.querySelector('[data-value="0"]').hidden = s.mode !== "autopilot";
    for (const [name, one] of Object.entries(fields)) one.set(s[name], ...limitsOf(name, s));
    step.textContent = `so that ρ = ${few(stepOf(s), 3)}`;
  }

  function limitsOf(name, s) {
    if (name === "gamma") return [{ low: 0.5 * scale(s), high: 100 * scale(s) }];
    if (name === "stat") return [{ high: Math.min(200, s.window / 2), most: Math.floor(s.window / 2) }];
    return [];
  }

  show();
  return { element, show };
}
