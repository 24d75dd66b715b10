// The explorer: a dataset, settings, and the results of every change of a setting.

import { api, ApiError } from "../common/api.js";
import { createHeader, h, showError, toast } from "../common/dom.js";
import { createCodePanel } from "./code.js";
import { createComparison } from "./comparison.js";
import { createControls } from "./controls.js";
import { uploadFile, createPicker } from "./dataset_picker.js";
import { latestOnly } from "../common/latest_only.js";
import {
  toRequest,
  defaultSettings,
  fromHash,
  settingLabel,
  suggestedSettings,
  toHash,
  toTradeoffRequest,
} from "./state.js";
import { makeMark, tiedRelation, createTradeoffMap } from "./tradeoff.js";
import { createAlarmList, createRunView } from "./run_view.js";

const DEFAULT_DATASET = "builtin:levels";
const state = {
  examples: [],
  limits: {},
  data: null,
  file: null, // that the user opened
  pendingLink: null, // a link whose file is not on the server
  compare: false,
  sides: { A: defaultSettings(), B: null },
  runs: { A: null, B: null },
};
const MODE_LABELS = { auto: "Automatic", manual: "Manual" };

// The parts

const picker = createPicker(state, {
  selectData: (selection) => selectData(selection).catch(showError),
  loadFile: (file) => loadFile(file).catch(showError),
  setKeyColumn: (keyColumn) => setKeyColumn(keyColumn).catch(showError),
});
const code = createCodePanel();
const alarms = createAlarmList((range) => zoomAll(range));
const tradeoffMap = createTradeoffMap((gamma, rho) => {
  Object.assign(state.sides.A, { mode: "manual", gamma, rho, tied: false });
  sides.A.controls.show();
  onSettingsChange("A");
});
const table = createComparison();
const sides = { A: makeSide("A", MODE_LABELS), B: makeSide("B", { ...MODE_LABELS, baseline: "Baseline" }) };
const compare = h(
  "button",
  { type: "button", id: "compare", "aria-pressed": "false", onclick: () => setCompare(!state.compare) },
  "Compare with B",
);

function makeSide(name, modes) {
  return {
    view: createRunView({ side: name, sync: "explorer", onzoom: (range) => zoomAll(range, name) }),
    controls: createControls({
      title: name === "A" ? "Settings" : "Settings B",
      modes,
      settings: () => state.sides[name] ?? (state.sides[name] = defaultSettings({ mode: "baseline" })),
      onChange: () => onSettingsChange(name),
      // The paper's norms have the units of the data: sliders are scaled to these.
      scale: (s) => (s.norm === "whitened" ? 1 : (state.data?.typical_norm ?? 1) / 5),
    }),
    run: latestOnly((input) => runSettings(name, input)),
  };
}

// Data

let requestId = 0;

/** Open a dataset. suggest: use its suggested settings. write: how the URL is updated: "push", "replace" or null. */
async function selectData({
  id: dataId,
  key = null,
  columns = null,
  file,
  keyColumn = null,
  suggest = false,
  write = "push",
}) {
  const request = ++requestId;
  if (file !== undefined) state.file = file;
  const query = new URLSearchParams();
  if (key !== null) query.set("key", key);
  for (const column of columns ?? []) query.append("columns", column);
  const data = await withReupload(() => api(`/explore/data/${encodeURIComponent(dataId)}?${query}`), dataId, keyColumn);
  if (request !== requestId) return; // the user has selected other data meanwhile
  data.rows = Array.from({ length: data.n_rows }, (_, row) => row);
  if (dataId === state.pendingLink?.id) state.pendingLink = null;
  state.data = data;
  if (suggest) for (const side of Object.values(state.sides)) Object.assign(side ?? {}, suggestedSettings(data));
  if (write) writeHash(write);
  picker.show();
  for (const name of ["A", "B"]) state.runs[name] = null;
  alarms.show(data, null);
  code.show(null);
  tradeoffMap.mark([]);
  tradeoffMap.setWaiting();
  for (const name of shownSides()) {
    sides[name].controls.show();
    sides[name].view.show(data, null, "The data");
    sides[name].view.charts().zoom(null, true);
    scheduleRun(name);
  }
}

/** Open a file. If a link is pending for it, the link's settings are used. */
async function loadFile(file) {
  const link = state.pendingLink;
  if (link) {
    const { id } = await uploadFile(file, link.keyColumn).catch((error) =>
      link.keyColumn ? {} : Promise.reject(error),
    );
    if (id === link.id) return applyLink(link, { file, write: "push" });
  }
  const { id } = await uploadFile(file);
  await selectData({ id, file, suggest: true });
}

/** Set the column of the key; null for one stream. */
async function setKeyColumn(keyColumn) {
  if (!state.file) return toast("Open the file again to set its key.", "error");
  const { id } = await uploadFile(state.file, keyColumn);
  await selectData({ id, keyColumn, suggest: true });
}

/** Show the page of a link. */
async function applyLink(link, more = {}) {
  Object.assign(state, { compare: link.compare, sides: link.sides });
  updateLayout();
  await selectData({
    id: link.id ?? DEFAULT_DATASET,
    key: link.key,
    columns: link.columns,
    keyColumn: link.keyColumn,
    ...more,
  });
}

/** Call the server; if it no longer has the file, upload it again and retry once. */
async function withReupload(call, id, keyColumn = state.data?.metadata.key_column ?? null) {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "unknown_data" || !state.file) throw error;
    const again = await uploadFile(state.file, keyColumn);
    if (again.id !== id) throw error;
    return call();
  }
}

// Runs

/** Update the URL after a change of settings, and run them. */
function onSettingsChange(name) {
  if (!state.data) return;
  writeHash("replace");
  scheduleRun(name);
}

function scheduleRun(name) {
  sides[name].view.setBusy(true);
  sides[name].run({ settings: { ...state.sides[name] }, data: state.data });
}

function writeHash(how) {
  const { data } = state;
  const hash = toHash({
    id: data.id,
    keyColumn: data.metadata.key_column,
    key: data.key,
    columns: selectedColumns(),
    sides: state.sides,
    compare: state.compare,
  });
  const other = location.hash && location.hash !== hash;
  history[how === "push" && other ? "pushState" : "replaceState"](null, "", hash);
}

function selectedColumns() {
  return state.data.columns.length === state.data.all_columns.length ? null : state.data.columns;
}

async function runSettings(name, { settings, data }) {
  const body = {
    data: data.id,
    key: data.key,
    columns: data.columns,
    settings: toRequest(settings, data.noise_std),
  };
  try {
    const run = await withReupload(() => api("/explore/runs", { method: "POST", body }), data.id);
    if (data !== state.data) return; // the user has selected other data meanwhile
    state.runs[name] = { ...run, far: settings.far, settings };
    showRun(name);
  } finally {
    const newest = data === state.data && JSON.stringify(settings) === JSON.stringify(state.sides[name]);
    if (newest) sides[name].view.setBusy(false);
  }
}

function showRun(name) {
  const run = state.runs[name];
  sides[name].view.show(state.data, run, `${state.compare ? `${name}: ` : ""}${settingLabel(run.settings)}`);
  if (name === "A") {
    alarms.show(state.data, run);
    code.show(run);
    updateTradeoff(run.settings);
  }
  tradeoffMap.mark(
    shownSides().flatMap((side) => makeMark(state.runs[side], state.compare ? side : "")),
    tiedRelation(state.runs.A?.settings),
  );
  if (state.compare && state.runs.A && state.runs.B)
    table.show(
      [state.runs.A, state.runs.B],
      [state.runs.A, state.runs.B].map((run) => settingLabel(run.settings)),
    );
}

// The trade-off, computed in the background

let tradeoffKey = "";
const fetchTradeoff = latestOnly(async ({ body, name }) => {
  const map = await withReupload(() => api("/explore/tradeoff", { method: "POST", body }), body.data);
  if (name === tradeoffKey) tradeoffMap.show(map);
});

function updateTradeoff(settings) {
  const { id, key, columns } = state.data;
  const body = { data: id, key, columns, settings: toTradeoffRequest(settings) };
  const name = JSON.stringify(body);
  if (name === tradeoffKey) return;
  tradeoffKey = name;
  tradeoffMap.setWaiting();
  fetchTradeoff({ body, name });
}

// Two sides

const shownSides = () => (state.compare ? ["A", "B"] : ["A"]);

function zoomAll(range, from) {
  for (const name of shownSides()) if (name !== from) sides[name].view.charts()?.zoom(range, true);
}

function setCompare(on) {
  state.compare = on;
  state.sides.B ??= defaultSettings({ ...state.sides.A, mode: "baseline" });
  updateLayout();
  for (const name of shownSides()) {
    sides[name].controls.show();
    onSettingsChange(name);
  }
}

function updateLayout() {
  compare.setAttribute("aria-pressed", String(state.compare));
  compare.textContent = state.compare ? "Close B" : "Compare with B";
  sides.B.view.element.hidden = sides.B.controls.element.hidden = table.element.hidden = !state.compare;
  document.body.classList.toggle("comparing", state.compare);
}

function buildPage() {
  const settings = h(
    "div",
    { class: "card settings" },
    sides.A.controls.element,
    sides.B.controls.element,
    h("div", { class: "row" }, compare),
  );
  const left = h("div", { class: "left stack" }, picker.element, settings);
  const views = h("div", { class: "views" }, sides.A.view.element, sides.B.view.element);
  const below = h(
    "div",
    { class: "below" },
    h("div", { class: "stack" }, table.element, alarms.element, code.element),
    tradeoffMap.element,
  );
  document
    .getElementById("main")
    .append(
      h("h1", { class: "sr" }, "Explorer"),
      h("div", { class: "explorer" }, left, h("div", { class: "stack" }, views, below)),
    );
  updateLayout();
}

async function start() {
  createHeader("explorer");
  const link = fromHash(location.hash);
  Object.assign(state, { compare: link.compare, sides: link.sides });
  buildPage();
  Object.assign(state, await api("/explore/streams").then(({ streams, limits }) => ({ examples: streams, limits })));
  picker.show();
  await openLink(link);
}

/** Open a link; if its file is not on the server, show an example until the user opens the file. */
async function openLink(link, write = "replace") {
  try {
    await applyLink(link, { suggest: !link.id, write });
  } catch (error) {
    if (!link.id || error.code === "no_connection") throw error;
    if (error.code === "unknown_data" && !link.id.startsWith("builtin:")) state.pendingLink = link;
    else showError(error);
    state.sides = { A: defaultSettings(), B: link.compare ? defaultSettings({ mode: "baseline" }) : null };
    await selectData({ id: DEFAULT_DATASET, suggest: true, write: state.pendingLink ? null : "replace" });
  }
}

// For tests: the arrays of the charts, and the last runs.
window.limpet = {
  explorer: {
    state,
    charts: (side = "A") => sides[side].view.charts()?.charts,
    zoom: zoomAll,
    tradeoff: () => tradeoffMap.map,
  },
};

addEventListener("popstate", () => openLink(fromHash(location.hash), null).catch(showError)); // back, forward, or a pasted link
start().catch(showError);
