// What is set on the page, as the server wants it, and as a link that reproduces it.

export const USUAL = {
  mode: "autopilot",
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
  rival: "SEM",
  alpha: 0.005, // of KSWIN
  window: 100,
  stat: 30,
  delta: 0.002, // of ADWIN
  drift: 0.25, // δ of Page–Hinkley, in standard deviations
  threshold: 50, // its λ, in the same
};

/** Settings that suit the data. */
export const suited = ({ suggested }) => ({
  components: suggested.n_components ?? 1,
  season: suggested.season ?? 0,
  gamma: USUAL.gamma,
  norm: USUAL.norm,
});

/** The least and the most that a setting may be; those of the server. */
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
const WHOLE = ["components", "season", "lags", "window", "stat"];
export const RIVALS = {
  SEM: "sEM",
  IEM: "iEM",
  SDEM: "SDEM",
  ADWIN: "ADWIN",
  KSWIN: "KSWIN",
  PageHinkley: "Page–Hinkley",
};
const CHOICES = {
  mode: ["autopilot", "hand", "rival"],
  norm: ["whitened", "mean", "full"],
  rival: Object.keys(RIVALS),
};

export const fresh = (changes = {}) => ({ ...USUAL, ...changes });

/** The settings of one side as POST /explore/runs takes them. spread: the standard deviation of the data's noise. */
export function asRequest(s, spread = 1) {
  if (s.mode === "rival") return rivalRequest(s, spread);
  if (s.mode === "autopilot")
    return { mode: "autopilot", far: s.far, n_components: s.components || "auto", season: s.season, lags: s.lags };
  const step = s.tied ? { beta: s.beta, M: s.M } : { rho: s.rho };
  return {
    mode: "hand",
    gamma: Number.isFinite(s.gamma) ? s.gamma : null,
    ...step,
    n_components: s.components || 1,
    norm: s.norm,
    far: s.far,
  };
}

/** What of a setting the trade-off depends on. */
export function tradeRequest(s) {
  if (s.mode !== "hand") return { mode: "autopilot", n_components: s.components || "auto" };
  return { mode: "hand", n_components: s.components || 1, norm: s.norm };
}

function rivalRequest(s, spread) {
  const n_components = s.components || 1;
  const own = {
    SEM: { n_components, rho: s.rho },
    IEM: { n_components },
    SDEM: { n_components, r: s.rho },
    ADWIN: { delta: s.delta },
    KSWIN: { alpha: s.alpha, window: s.window, stat: s.stat },
    PageHinkley: {
      name: "RiverPageHinkley",
      delta: rounded(s.drift * spread),
      threshold: rounded(s.threshold * spread),
    },
  };
  return { mode: "rival", name: s.rival, ...own[s.rival] };
}

const rounded = (x) => Number(x.toPrecision(3)); // it is copied as code, too

/** ρ that Corollary 1 of the paper ties to γ. */
export const tiedStep = (gamma, beta, M) => (beta * Math.exp(-((gamma / M) ** 2))) / (2 * gamma);

/** The step in force: given, or tied. */
export const stepOf = (s) => (s.tied ? tiedStep(s.gamma, s.beta, s.M) : s.rho);

/** A short name of a setting, for headings. */
export function nameOf(s) {
  if (s.mode === "rival") return RIVALS[s.rival];
  return s.mode === "autopilot" ? "SRA, no knobs" : "SRA by hand";
}

export function toHash({ id, by, key, columns, sides, compare }) {
  const words = new URLSearchParams();
  words.set("data", id);
  if (by !== null && by !== undefined) words.set("by", by);
  if (key !== null && key !== undefined) words.set("key", key);
  for (const column of columns ?? []) words.append("column", column);
  const put = (settings, prefix) => {
    for (const [name, value] of Object.entries(settings))
      if (value !== USUAL[name]) words.set(prefix + name, String(value));
  };
  put(sides.A, "");
  if (compare) {
    words.set("compare", "1");
    put(sides.B, "b.");
  }
  return `#${words}`;
}

/** A number of a link; the usual one where there is none, or one that cannot be. */
function numberFrom(name, text) {
  const [x, [least, most]] = [Number(text), LIMITS[name]];
  if (name === "gamma" && x === Infinity) return x;
  const fits = text.trim() !== "" && x >= least && x <= most && (!WHOLE.includes(name) || Number.isInteger(x));
  return fits ? x : USUAL[name];
}

export function fromHash(hash) {
  const words = new URLSearchParams(hash.replace(/^#/, ""));
  const settings = (prefix) => {
    const read = fresh();
    for (const [name, usual] of Object.entries(USUAL)) {
      const text = words.get(prefix + name);
      if (text === null) continue;
      if (typeof usual === "number") read[name] = numberFrom(name, text);
      else if (typeof usual === "boolean") read[name] = text === "true";
      else if (CHOICES[name].includes(text)) read[name] = text;
    }
    if (!prefix && read.mode === "rival") read.mode = USUAL.mode; // rivals are for the second side
    return read;
  };
  const columns = words.getAll("column");
  return {
    id: words.get("data"),
    by: words.get("by"),
    key: words.get("key"),
    columns: columns.length ? columns : null,
    compare: words.get("compare") === "1",
    sides: { A: settings(""), B: words.get("compare") === "1" ? settings("b.") : null },
  };
}
