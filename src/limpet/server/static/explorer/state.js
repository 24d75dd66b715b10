// The settings of the page, as requests and as links.

export const DEFAULTS = {
  mode: "auto",
  far: 1e-4,
  components: 1, // 0 is "auto"
  season: 0,
  lags: 0,
  gamma: 6, // Infinity is allowed
  rho: 0.01,
  tied: false,
  beta: 0.1,
  M: 5,
  norm: "whitened",
  baseline: "SEM",
  alpha: 0.005, // of KSWIN
  window: 100,
  stat: 30,
  delta: 0.002, // of ADWIN
  drift: 0.25, // δ of Page–Hinkley, in standard deviations
  threshold: 50, // λ of Page–Hinkley, likewise
};

/** The suggested settings of a dataset. */
export const suggestedSettings = ({ suggested }) => ({
  components: suggested.n_components ?? 1,
  season: suggested.season ?? 0,
  gamma: DEFAULTS.gamma,
  norm: DEFAULTS.norm,
});

/** Minimum and maximum of the settings on the page; the server accepts all of these, and validates every request. */
export const LIMITS = {
  far: [1e-12, 0.1],
  components: [0, 5],
  season: [0, 20000],
  lags: [0, 24],
  gamma: [1e-9, 1e9],
  rho: [1e-9, 1],
  beta: [1e-9, 1e9],
  M: [1e-9, 1e9],
  alpha: [1e-9, 1],
  window: [20, 5000],
  stat: [5, 1000],
  delta: [1e-9, 1],
  drift: [1e-6, 1e6],
  threshold: [1e-6, 1e9],
};
const INTEGER_SETTINGS = ["components", "season", "lags", "window", "stat"];
export const BASELINES = {
  SEM: "sEM",
  IEM: "iEM",
  SDEM: "SDEM",
  ADWIN: "ADWIN",
  KSWIN: "KSWIN",
  PageHinkley: "Page–Hinkley",
};
const CHOICES = {
  mode: ["auto", "manual", "baseline"],
  norm: ["whitened", "mean", "full"],
  baseline: Object.keys(BASELINES),
};

export const defaultSettings = (changes = {}) => ({ ...DEFAULTS, ...changes });

/** The settings of one side for POST /explore/runs. noiseStd: the standard deviation of the noise. */
export function toRequest(s, noiseStd = 1) {
  if (s.mode === "baseline") return baselineRequest(s, noiseStd);
  if (s.mode === "auto")
    return { mode: "auto", far: s.far, n_components: s.components || "auto", season: s.season, lags: s.lags };
  const step = s.tied ? { beta: s.beta, M: s.M } : { rho: s.rho };
  return {
    mode: "manual",
    gamma: Number.isFinite(s.gamma) ? s.gamma : null,
    ...step,
    n_components: s.components || 1,
    norm: s.norm,
    far: s.far,
  };
}

/** The settings on which the trade-off depends. */
export function toTradeoffRequest(s) {
  if (s.mode !== "manual") return { mode: "auto", n_components: s.components || "auto" };
  return { mode: "manual", n_components: s.components || 1, norm: s.norm };
}

function baselineRequest(s, noiseStd) {
  const n_components = s.components || 1;
  const params = {
    SEM: { n_components, rho: s.rho },
    IEM: { n_components },
    SDEM: { n_components, r: s.rho },
    ADWIN: { delta: s.delta },
    KSWIN: { alpha: s.alpha, window: s.window, stat: s.stat },
    PageHinkley: {
      name: "RiverPageHinkley",
      delta: roundTo3Digits(s.drift * noiseStd),
      threshold: roundTo3Digits(s.threshold * noiseStd),
    },
  };
  return { mode: "baseline", name: s.baseline, ...params[s.baseline] };
}

const roundTo3Digits = (x) => Number(x.toPrecision(3)); // appears in the code

/** ρ as a function of γ by Corollary 1 of the paper. */
export const tiedStep = (gamma, beta, M) => (beta * Math.exp(-((gamma / M) ** 2))) / (2 * gamma);

/** The effective step size: given, or tied to γ. */
export const effectiveStep = (s) => (s.tied ? tiedStep(s.gamma, s.beta, s.M) : s.rho);

/** A short name of a setting, for headings. */
export function settingLabel(s) {
  if (s.mode === "baseline") return BASELINES[s.baseline];
  return s.mode === "auto" ? "Detector" : "SRA";
}

export function toHash({ id, keyColumn, key, columns, sides, compare }) {
  const params = new URLSearchParams();
  params.set("data", id);
  if (keyColumn !== null && keyColumn !== undefined) params.set("key_column", keyColumn);
  if (key !== null && key !== undefined) params.set("key", key);
  for (const column of columns ?? []) params.append("column", column);
  const put = (settings, prefix) => {
    for (const [name, value] of Object.entries(settings))
      if (value !== DEFAULTS[name]) params.set(prefix + name, String(value));
  };
  put(sides.A, "");
  if (compare) {
    params.set("compare", "1");
    put(sides.B, "b.");
  }
  return `#${params}`;
}

/** A number of a link; the default if it is missing or invalid. */
function parseNumber(name, text) {
  const [x, [min, max]] = [Number(text), LIMITS[name]];
  if (name === "gamma" && x === Infinity) return x;
  const fits = text.trim() !== "" && x >= min && x <= max && (!INTEGER_SETTINGS.includes(name) || Number.isInteger(x));
  return fits ? x : DEFAULTS[name];
}

export function fromHash(hash) {
  const params = new URLSearchParams(hash.replace(/^#/, ""));
  const settings = (prefix) => {
    const read = defaultSettings();
    for (const [name, fallback] of Object.entries(DEFAULTS)) {
      const text = params.get(prefix + name);
      if (text === null) continue;
      if (typeof fallback === "number") read[name] = parseNumber(name, text);
      else if (typeof fallback === "boolean") read[name] = text === "true";
      else if (CHOICES[name].includes(text)) read[name] = text;
    }
    if (!prefix && read.mode === "baseline") read.mode = DEFAULTS.mode; // baselines are for the second side
    return read;
  };
  const columns = params.getAll("column");
  return {
    id: params.get("data"),
    keyColumn: params.get("key_column"),
    key: params.get("key"),
    columns: columns.length ? columns : null,
    compare: params.get("compare") === "1",
    sides: { A: settings(""), B: params.get("compare") === "1" ? settings("b.") : null },
  };
}
