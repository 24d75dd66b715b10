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
  drift: 0.005, // δ of Page–Hinkley
};

export const fresh = (changes = {}) => ({ ...USUAL, ...changes });

/** The settings of one side as POST /explore/runs takes them. */
export function asRequest(s) {
  if (s.mode === "rival") return rivalRequest(s);
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

function rivalRequest(s) {
  const n_components = s.components || 1;
  const own = {
    SEM: { n_components, rho: s.rho },
    IEM: { n_components },
    SDEM: { n_components, r: s.rho },
    ADWIN: { delta: s.delta },
    KSWIN: { alpha: s.alpha, window: s.window, stat: s.stat },
    PageHinkley: { delta: s.drift },
  };
  return { mode: "rival", name: s.rival, ...own[s.rival] };
}

/** ρ that Corollary 1 of the paper ties to γ. */
export const tiedStep = (gamma, beta, M) => (beta * Math.exp(-((gamma / M) ** 2))) / (2 * gamma);

/** The step in force: given, or tied. */
export const stepOf = (s) => (s.tied ? tiedStep(s.gamma, s.beta, s.M) : s.rho);

/** A short name of a setting, for headings. */
export function nameOf(s) {
  if (s.mode === "rival") return { PageHinkley: "Page–Hinkley" }[s.rival] ?? s.rival;
  return s.mode === "autopilot" ? "SRA, no knobs" : "SRA by hand";
}

export function toHash({ id, key, columns, sides, compare }) {
  const words = new URLSearchParams();
  words.set("data", id);
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

export function fromHash(hash) {
  const words = new URLSearchParams(hash.replace(/^#/, ""));
  const settings = (prefix) => {
    const read = fresh();
    for (const [name, usual] of Object.entries(USUAL)) {
      const text = words.get(prefix + name);
      if (text === null) continue;
      if (typeof usual === "number") read[name] = Number.isNaN(Number(text)) ? usual : Number(text);
      else read[name] = typeof usual === "boolean" ? text === "true" : text;
    }
    return read;
  };
  const columns = words.getAll("column");
  return {
    id: words.get("data"),
    key: words.get("key"),
    columns: columns.length ? columns : null,
    compare: words.get("compare") === "1",
    sides: { A: settings(""), B: words.get("compare") === "1" ? settings("b.") : null },
  };
}
