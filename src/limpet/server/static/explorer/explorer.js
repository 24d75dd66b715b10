// The explorer: data on one side, what a setting makes of it on the other, at every move of a slider.

import { api, ApiError, bar, h, tell, toast } from "../common.js";
import { asCode } from "./code.js";
import { differences } from "./compare.js";
import { controls } from "./controls.js";
import { give, picker } from "./data.js";
import { latest } from "./latest.js";
import { asRequest, fresh, fromHash, nameOf, suited, toHash, tradeRequest } from "./state.js";
import { markOf, relationOf, tradeMap } from "./tradeoff.js";
import { alarmList, view } from "./view.js";

const FIRST = "builtin:levels";
const state = {
  builtins: [],
  limits: {},
  data: null,
  file: null, // that was dropped
  awaited: null, // a link whose file is not here
  compare: false,
  sides: { A: fresh(), B: null },
  runs: { A: null, B: null },
};
const MODES = { autopilot: "No knobs", hand: "By hand" };

// The parts

const pick = picker(state, {
  choose: (what) => choose(what).catch(tell),
  take: (file) => take(file).catch(tell),
  divide: (by) => divide(by).catch(tell),
});
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

let choosing = 0;

/** Looks at other data. suggest: with settings that suit them. write: how the address tells it: "push", "replace" or not at all. */
async function choose({ id, key = null, columns = null, file, by = null, suggest = false, write = "push" }) {
  const mine = ++choosing;
  if (file !== undefined) state.file = file;
  const query = new URLSearchParams();
  if (key !== null) query.set("key", key);
  for (const column of columns ?? []) query.append("columns", column);
  const data = await known(() => api(`/explore/data/${encodeURIComponent(id)}?${query}`), id, by);
  if (mine !== choosing) return; // something else was chosen meanwhile
  data.rows = Array.from({ length: data.n_rows }, (_, row) => row);
  if (id === state.awaited?.id) state.awaited = null;
  state.data = data;
  if (suggest) for (const side of Object.values(state.sides)) Object.assign(side ?? {}, suited(data));
  if (write) writeHash(write);
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
    learnSoon(name);
  }
}

/** A file was dropped. If a link waits for it, the link's settings are taken, and nothing is suggested. */
async function take(file) {
  const wanted = state.awaited;
  if (wanted) {
    const { id } = await give(file, wanted.by).catch((error) => (wanted.by ? {} : Promise.reject(error)));
    if (id === wanted.id) return restore(wanted, { file, write: "push" });
  }
  const { id } = await give(file);
  await choose({ id, file, suggest: true });
}

/** Has the columns of a file tell its streams apart by another one; null for one stream. */
async function divide(by) {
  if (!state.file) return toast("Drop the file once more, then its streams can be told apart.", "error");
  const { id } = await give(state.file, by);
  await choose({ id, by, suggest: true });
}

/** The page as a link has it. */
async function restore(asked, more = {}) {
  Object.assign(state, { compare: asked.compare, sides: asked.sides });
  layOut();
  await choose({ id: asked.id ?? FIRST, key: asked.key, columns: asked.columns, by: asked.by, ...more });
}

/** Calls; if the server does not keep the file any more it gets it again, and is called once more. */
async function known(call, id, by = state.data?.told.by ?? null) {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "unknown_data" || !state.file) throw error;
    const again = await give(state.file, by);
    if (again.id !== id) throw error;
    return call();
  }
}

// Learning

/** A setting was changed: the address tells it, and it is learnt. */
function changed(name) {
  if (!state.data) return;
  writeHash("replace");
  learnSoon(name);
}

function learnSoon(name) {
  sides[name].view.waits(true);
  sides[name].run({ settings: { ...state.sides[name] }, data: state.data });
}

function writeHash(how) {
  const { data } = state;
  const hash = toHash({
    id: data.id,
    by: data.told.by,
    key: data.key,
    columns: someColumns(),
    sides: state.sides,
    compare: state.compare,
  });
  const other = location.hash && location.hash !== hash;
  history[how === "push" && other ? "pushState" : "replaceState"](null, "", hash);
}

function someColumns() {
  return state.data.columns.length === state.data.all_columns.length ? null : state.data.columns;
}

async function learn(name, { settings, data }) {
  const body = {
    data: data.id,
    key: data.key,
    columns: data.columns,
    settings: asRequest(settings, data.usual_spread),
  };
  try {
    const run = await known(() => api("/explore/runs", { method: "POST", body }), data.id);
    if (data !== state.data) return; // other data were chosen meanwhile
    state.runs[name] = { ...run, far: settings.far, settings };
    showRun(name);
  } finally {
    const newest = data === state.data && JSON.stringify(settings) === JSON.stringify(state.sides[name]);
    if (newest) sides[name].view.waits(false);
  }
}

function showRun(name) {
  const run = state.runs[name];
  sides[name].view.show(state.data, run, `${state.compare ? `${name}: ` : ""}${nameOf(run.settings)}`);
  if (name === "A") {
    alarms.show(state.data, run);
    code.show(run);
    askTrade(run.settings);
  }
  trade.mark(
    shownSides().flatMap((one) => markOf(state.runs[one], state.compare ? one : "")),
    relationOf(state.runs.A?.settings),
  );
  if (state.compare && state.runs.A && state.runs.B)
    table.show(
      [state.runs.A, state.runs.B],
      [state.runs.A, state.runs.B].map((one) => nameOf(one.settings)),
    );
}

// The trade-off comes when it comes: nothing waits for it

let askedTrade = "";
const runTrade = latest(async ({ body, name }) => {
  const map = await known(() => api("/explore/tradeoff", { method: "POST", body }), body.data);
  if (name === askedTrade) trade.show(map);
});

function askTrade(settings) {
  const { id, key, columns } = state.data;
  const body = { data: id, key, columns, settings: tradeRequest(settings) };
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
      h("div", { class: "explorer" }, left, h("div", { class: "stack" }, views, below)),
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
  await opened(asked);
}

/** Opens a link; if its data are not here, it waits for them beside a stream that always is. */
async function opened(asked, write = "replace") {
  try {
    await restore(asked, { suggest: !asked.id, write });
  } catch (error) {
    if (!asked.id || error.code === "no_answer") throw error;
    if (error.code === "unknown_data" && !asked.id.startsWith("builtin:")) state.awaited = asked;
    else tell(error);
    state.sides = { A: fresh(), B: asked.compare ? fresh({ mode: "rival" }) : null };
    await choose({ id: FIRST, suggest: true, write: state.awaited ? null : "replace" });
  }
}

// What tests look at: the arrays that the charts really have, and the last runs.
window.limpet = {
  explorer: { state, charts: (side = "A") => sides[side].view.charts()?.charts, zoom: zoomAll, trade: () => trade.map },
};

addEventListener("popstate", () => opened(fromHash(location.hash), null).catch(tell)); // back, forth, or a link was pasted
start().catch(tell);
