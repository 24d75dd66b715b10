// The explorer: data on one side, what a setting makes of it on the other, at every move of a slider.

import { api, ApiError, bar, h, tell, toast } from "../common.js";
import { asCode } from "./code.js";
import { differences } from "./compare.js";
import { controls } from "./controls.js";
import { give, picker } from "./data.js";
import { asRequest, fresh, fromHash, nameOf, stepOf, toHash } from "./state.js";
import { tradeMap } from "./tradeoff.js";
import { alarmList, view } from "./view.js";

const FIRST = "builtin:levels";
const state = {
  builtins: [],
  limits: {},
  data: null,
  file: null,
  compare: false,
  sides: { A: fresh(), B: null },
  runs: { A: null, B: null },
};
const MODES = { autopilot: "No knobs", hand: "By hand" };

// The parts

const pick = picker(state, (what) => choose(what).catch(tell));
const code = asCode();
const alarms = alarmList((range) => zoomAll(range));
const trade = tradeMap((gamma, rho) => {
  Object.assign(state.sides.A, { mode: "hand", gamma, rho, tied: false });
  sides.A.controls.show();
  changed("A");
});
const table = differences();
const sides = { A: makeSide("A", MODES), B: makeSide("B", { ...MODES, rival: "A rival" }) };
const compare = h(
  "button",
  { type: "button", id: "compare", "aria-pressed": "false", onclick: () => setCompare(!state.compare) },
  "Compare with B",
);
const busy = h("p", { class: "busy small", role: "status", hidden: true });

function makeSide(name, modes) {
  return {
    view: view({ side: name, sync: "explorer", onzoom: (range) => zoomAll(range, name) }),
    controls: controls({
      title: name === "A" ? "Settings" : "Settings B",
      modes,
      settings: () => state.sides[name] ?? (state.sides[name] = fresh({ mode: "rival" })),
      changed: () => changed(name),
      // The paper's norms count in the units of the data: sliders reach as far as these do.
      scale: (s) => (s.norm === "whitened" ? 1 : (state.data?.usual_length ?? 1) / 5),
    }),
    run: latest((wanted) => learn(name, wanted)),
  };
}

// Data

async function choose({ id, key = null, columns = null, file, suggest = false }) {
  if (file !== undefined) state.file = file;
  const query = new URLSearchParams();
  if (key !== null) query.set("key", key);
  for (const column of columns ?? []) query.append("columns", column);
  const data = await known(() => api(`/explore/data/${encodeURIComponent(id)}?${query}`), id);
  data.rows = Array.from({ length: data.n_rows }, (_, row) => row);
  state.data = data;
  if (suggest) {
    const suited = {
      components: data.suggested.n_components ?? 1,
      season: data.suggested.season ?? 0,
      gamma: fresh().gamma,
      norm: "whitened",
    };
    for (const side of Object.values(state.sides)) if (side) Object.assign(side, suited);
  }
  pick.show();
  for (const name of ["A", "B"]) state.runs[name] = null;
  alarms.show(data, null);
  code.show(null);
  trade.mark([]);
  trade.waiting();
  for (const name of shownSides()) {
    sides[name].controls.show();
    sides[name].view.show(data, null, "The data");
    sides[name].view.charts().zoom(null, true);
    changed(name);
  }
}

/** Calls; if the server does not keep the file any more it gets it again, and is called once more. */
async function known(call, id) {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "unknown_data" || !state.file) throw error;
    const again = await give(state.file);
    if (again.id !== id) throw error;
    return call();
  }
}

// Learning: one call at a time for each side, and after it the newest setting, if there is a newer one

function latest(work) {
  let [running, waiting] = [false, null];
  return async function ask(wanted) {
    if (running) {
      waiting = wanted;
      return;
    }
    running = true;
    try {
      await work(wanted);
    } catch (error) {
      tell(error);
    } finally {
      running = false;
      const next = waiting;
      waiting = null;
      if (next) ask(next);
    }
  };
}

function changed(name) {
  if (!state.data) return;
  history.replaceState(
    null,
    "",
    toHash({
      id: state.data.id,
      key: state.data.key,
      columns: someColumns(),
      sides: state.sides,
      compare: state.compare,
    }),
  );
  sides[name].run({ settings: { ...state.sides[name] }, data: state.data });
}

function someColumns() {
  return state.data.columns.length === state.data.all_columns.length ? null : state.data.columns;
}

async function learn(name, { settings, data }) {
  const body = { data: data.id, key: data.key, columns: data.columns, settings: asRequest(settings) };
  const done = busyWith();
  try {
    const run = await known(() => api("/explore/runs", { method: "POST", body }), data.id);
    if (data !== state.data) return; // other data were chosen meanwhile
    state.runs[name] = { ...run, far: settings.far, settings };
    showRun(name);
  } finally {
    done();
  }
}

/** Says what takes so long, if it does; the function that it returns ends that. */
function busyWith() {
  const began = Date.now();
  const mine = setInterval(() => {
    busy.hidden = false;
    busy.textContent = `Learning, for ${Math.round((Date.now() - began) / 1000)} s now. The first run of its kind is compiled, which can take half a minute, once.`;
  }, 1000);
  return () => {
    clearInterval(mine);
    busy.hidden = true;
  };
}

function showRun(name) {
  const run = state.runs[name];
  sides[name].view.show(state.data, run, `${state.compare ? `${name}: ` : ""}${nameOf(run.settings)}`);
  if (name === "A") {
    alarms.show(state.data, run);
    code.show(run);
    askTrade(run.settings);
  }
  trade.mark(shownSides().map(markOf).filter(Boolean));
  if (state.compare && state.runs.A && state.runs.B)
    table.show(
      [state.runs.A, state.runs.B],
      [state.runs.A, state.runs.B].map((one) => nameOf(one.settings)),
    );
}

function markOf(name) {
  const run = state.runs[name];
  if (!run || run.settings.mode === "rival") return null;
  const [gamma, rho] = run.settings.mode === "hand" ? [run.settings.gamma, stepOf(run.settings)] : [run.gamma, run.rho];
  return gamma && rho ? { gamma: Math.min(gamma, 1e6), rho, name: state.compare ? name : "" } : null;
}

// The trade-off comes when it comes: nothing waits for it

let askedTrade = "";
const runTrade = latest(async ({ body, name }) => {
  const map = await known(() => api("/explore/tradeoff", { method: "POST", body }), body.data);
  if (name === askedTrade) trade.show(map);
});

function askTrade(settings) {
  const hand = {
    mode: "hand",
    n_components: settings.components || 1,
    norm: settings.mode === "hand" ? settings.norm : "whitened",
  };
  const body = {
    data: state.data.id,
    key: state.data.key,
    columns: state.data.columns,
    settings: settings.mode === "hand" ? hand : { mode: "autopilot", n_components: settings.components || "auto" },
  };
  const name = JSON.stringify(body);
  if (name === askedTrade) return;
  askedTrade = name;
  trade.waiting();
  runTrade({ body, name });
}

// Two sides

const shownSides = () => (state.compare ? ["A", "B"] : ["A"]);

function zoomAll(range, from) {
  for (const name of shownSides()) if (name !== from) sides[name].view.charts()?.zoom(range, true);
}

function setCompare(on) {
  state.compare = on;
  state.sides.B ??= fresh({ ...state.sides.A, mode: "rival" });
  layOut();
  for (const name of shownSides()) {
    sides[name].controls.show();
    changed(name);
  }
}

function layOut() {
  compare.setAttribute("aria-pressed", String(state.compare));
  compare.textContent = state.compare ? "Close B" : "Compare with B";
  sides.B.view.element.hidden = sides.B.controls.element.hidden = table.element.hidden = !state.compare;
  document.body.classList.toggle("comparing", state.compare);
}

function lay() {
  const settings = h(
    "div",
    { class: "card settings" },
    sides.A.controls.element,
    sides.B.controls.element,
    h("div", { class: "row" }, compare),
  );
  const left = h("div", { class: "left stack" }, pick.element, settings);
  const views = h("div", { class: "views" }, sides.A.view.element, sides.B.view.element);
  const below = h(
    "div",
    { class: "below" },
    h("div", { class: "stack" }, table.element, alarms.element, code.element),
    trade.element,
  );
  document
    .getElementById("main")
    .append(
      h("h1", { class: "sr" }, "Explorer"),
      h("div", { class: "explorer" }, left, h("div", { class: "stack" }, busy, views, below)),
    );
  layOut();
}

async function start() {
  bar("explorer");
  const asked = fromHash(location.hash);
  Object.assign(state, { compare: asked.compare, sides: asked.sides });
  lay();
  Object.assign(state, await api("/explore/streams").then(({ streams, limits }) => ({ builtins: streams, limits })));
  pick.show();
  try {
    await choose({ id: asked.id ?? FIRST, key: asked.key, columns: asked.columns, suggest: !asked.id });
  } catch (error) {
    if (!asked.id) throw error;
    toast(
      error.code === "unknown_data" ? "The link's data are not here: drop the file again." : error.message,
      "error",
    );
    await choose({ id: FIRST, suggest: true });
  }
}

// What tests look at: the arrays that the charts really have, and the last runs.
window.holdfast = {
  explorer: { state, charts: (side = "A") => sides[side].view.charts()?.charts, zoom: zoomAll, trade: () => trade.map },
};

addEventListener("hashchange", () => location.reload()); // a link was pasted; what the page writes itself is no such event
start().catch(tell);
