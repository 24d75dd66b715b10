// What came of one setting: facts, charts, alarms.

import { few, h, whole } from "../common.js";
import { panels } from "../charts/chart.js";
import { readableTime } from "../charts/axis.js";

/** The data alone, while nothing has been learnt from them yet. */
const NOTHING = { n_rejected: 0, rejected: [], estimate: null, alarms: [], notes: [], watched_by: null, score: null };

/** One side. onzoom: called when somebody zooms here. Returns {element, show(data, run or null, title), waits(on), charts()}. */
export function view({ side, sync, onzoom }) {
  const facts = h("dl", { class: "facts", "aria-live": "polite" });
  const notes = h("div", { class: "notes" });
  const place = h("div", { class: "chart-place" });
  const busy = h("p", { class: "busy small", role: "status", hidden: true });
  const heading = h("h2", {});
  const all = h(
    "button",
    { type: "button", class: "quiet", hidden: true, onclick: () => charts?.zoom(null) },
    "Show all rows",
  );
  const top = h("div", { class: "row view-head" }, heading, all, facts);
  const element = h(
    "section",
    { class: "card view", "aria-label": `Result ${side}`, "data-side": side },
    top,
    h("div", {}, busy, notes),
    place,
  );
  let [charts, shape, began, timer] = [null, "", 0, null];

  /** What is shown is no longer what is set; after a while it says what takes so long. */
  function waits(on) {
    element.classList.toggle("stale", on);
    element.setAttribute("aria-busy", String(on));
    if (on && timer !== null) return;
    clearInterval(timer);
    timer = null;
    busy.hidden = true;
    if (!on) return;
    began = Date.now();
    timer = setInterval(() => {
      busy.hidden = false;
      busy.textContent = `Learning, for ${Math.round((Date.now() - began) / 1000)} s now. The first run of its kind is compiled, which can take half a minute, once.`;
    }, 1000);
  }

  function show(data, found, title) {
    const run = found ?? NOTHING;
    heading.textContent = title;
    facts.replaceChildren(...factsOf(data, found));
    notes.replaceChildren(...run.notes.map((note) => h("p", { class: "notice small" }, note)));
    const wanted = panelsOf(data, run, side);
    const now = JSON.stringify([data.id, data.key, wanted]);
    const zoomed = charts?.zoomed ?? null;
    if (now !== shape) {
      charts?.destroy();
      charts = panels(place, { panels: wanted, sync, onzoom, onwindow: (zoomed) => (all.hidden = !zoomed) });
      if (shape && JSON.parse(shape)[0] === data.id && JSON.parse(shape)[1] === data.key) charts.zoomed = zoomed;
      shape = now;
    }
    charts.set({ x: data.rows, times: data.times, data: dataOf(data, run), events: eventsOf(data, run) });
  }
  return { element, show, waits, charts: () => charts };
}

function factsOf(data, run) {
  if (!run) return [h("div", {}, h("dt", {}, "points"), h("dd", {}, whole(data.n_rows)))];
  const share = data.n_rows ? ` (${few((100 * run.n_rejected) / data.n_rows, 2)} %)` : "";
  const rejected = run.n_rejected === null ? "–" : `${whole(run.n_rejected)}${share}`;
  const facts = [
    [run.n_rows === 1 ? "point" : "points", whole(run.n_rows)],
    ["rejected", rejected, "rejected", run.n_rejected === null ? "this method rejects nothing" : undefined],
    run.watched_by && [run.n_changes === 1 ? "change" : "changes", whole(run.n_changes), "changes"],
    run.watched_by && [
      run.n_alarms - run.n_changes === 1 ? "anomaly" : "anomalies",
      run.watched_by === "detector" ? "–" : whole(run.n_alarms - run.n_changes),
      "anomalies",
    ],
    run.mse && [
      "mean squared error",
      run.mse.total === null ? "–" : few(run.mse.total, 3),
      "mse",
      run.mse.told ?? `before the first change ${few(run.mse.before, 3)}, after it ${few(run.mse.after, 3)}`,
    ],
    run.gamma !== null && run.gamma !== undefined && ["γ", few(run.gamma, 3)],
    run.rho !== null && run.rho !== undefined && ["ρ", few(run.rho, 3)],
    run.n_invalid > 0 && ["not usable", whole(run.n_invalid)],
    ["learnt in", `${few(run.elapsed_ms, 2)} ms`],
  ];
  return facts
    .filter(Boolean)
    .map(([name, value, id, title]) => h("div", { title }, h("dt", {}, name), h("dd", { "data-fact": id }, value)));
}

function panelsOf(data, run, side) {
  const n = data.columns.length;
  const height = n === 1 ? 250 : n === 2 ? 170 : n <= 4 ? 125 : 90;
  const estimate = side === "B" ? "second" : "estimate";
  const events = [
    run.watched_by && { label: "change", kind: "upright", colour: "change" },
    run.p_value && { label: "anomaly", kind: "tick", colour: "anomaly" },
    data.change_points.length && { label: "known change", kind: "upright", colour: "soft", dash: [5, 4] },
  ].filter(Boolean);
  const ofVariables = data.columns.map((name, v) => ({
    name: `value ${v}`,
    title: name,
    height,
    usual: true,
    legend: v ? [] : events,
    series: [
      { label: "value", kind: "dots", colour: "points" },
      { label: run.n_rejected === null ? "" : "rejected", kind: "marks", colour: "rejected" },
      ...(data.means?.[v] ?? []).map((_, k) => ({ label: k ? "" : "truth", colour: "truth", width: 1, dash: [5, 4] })),
      ...(run.estimate?.[v] ?? []).map((_, k) => ({ label: k ? "" : "estimate", colour: estimate, width: 2 })),
    ],
  }));
  if (!run.score) return ofVariables;
  const score = {
    name: "score",
    title: "Score",
    height: 84,
    scale: "asinh",
    series: [{ label: "score", colour: "points", width: 1 }],
  };
  if (!run.p_value) return [...ofVariables, score];
  const whose = run.watched_by === "autopilot" ? "p-value, by the autopilot beside it" : "p-value";
  const rare = { label: "p", kind: "dots", colour: "points", size: 1.4 };
  const promise = { label: "promise", colour: "soft", width: 1, dash: [4, 4] };
  const p = { name: "p", title: whose, height: 84, scale: "log", series: [rare, promise] };
  const range = (low) => [(low ?? 1e-4) / 1.6, 1.6];
  return [...ofVariables, score, { ...p, range, also: (u) => [u.data[2]?.[0] ?? 1, 1] }];
}

function dataOf(data, run) {
  const told = run.score ? { score: [run.score] } : {};
  data.columns.forEach((_, v) => {
    const rejected = new Array(data.n_rows).fill(null);
    for (const row of run.rejected) rejected[row] = data.values[v][row];
    told[`value ${v}`] = [data.values[v], rejected, ...(data.means?.[v] ?? []), ...(run.estimate?.[v] ?? [])];
  });
  if (run.p_value)
    told.p = [run.p_value.map((p) => (p === null ? null : Math.max(p, 1e-12))), data.rows.map(() => run.far)];
  return told;
}

function eventsOf(data, run) {
  const known = data.change_points.map((row) => ({ kind: "known", row }));
  return [...known, ...run.alarms.map(({ kind, row, onset }) => ({ kind, row, from: onset }))];
}

/** The alarms with what they say, newest last; a click zooms there. go([first, last]) zooms. */
export function alarmList(go) {
  const body = h("tbody", {});
  const told = h("p", { class: "small soft" });
  const table = h(
    "div",
    { class: "wide tall", hidden: true },
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          ["What", "When", "Which, how much"].map((one) => h("th", { scope: "col" }, one)),
        ),
      ),
      body,
    ),
  );
  const summary = h("pre", { class: "summary", tabIndex: 0, hidden: true });
  const element = h(
    "section",
    { class: "card alarms", "aria-label": "Alarms" },
    h("h2", {}, "Alarms"),
    told,
    table,
    summary,
  );
  return {
    element,
    show(data, run) {
      if (!run) {
        told.textContent = "";
        table.hidden = summary.hidden = true;
        return;
      }
      told.textContent = wordsOn(run);
      told.hidden = !told.textContent;
      table.hidden = !run.alarms.length;
      body.replaceChildren(...run.alarms.slice(-500).map((alarm) => rowOf(alarm, data, go)));
      summary.textContent = run.summary ?? "";
      summary.hidden = !run.summary;
    },
  };
}

function wordsOn(run) {
  const by =
    run.watched_by === "autopilot"
      ? "The paper's algorithm raises none itself; these are the autopilot's at this promise. "
      : "";
  if (!run.watched_by) return "This method gives scores; it raises no alarms.";
  if (!run.alarms.length) return `${by}No alarm.`;
  const left = Math.max(run.n_alarms - Math.min(run.alarms.length, 500), 0);
  return by + (left ? `The last ${whole(Math.min(run.alarms.length, 500))} of ${whole(run.n_alarms)}.` : "");
}

function howMuch({ direction, size }) {
  if (size === null) return direction;
  return direction === "up" || direction === "down"
    ? `${direction} by ${few(size, 3)} sd`
    : `${direction}, spread × ${few(size, 3)}`;
}

function rowOf(alarm, data, go) {
  const room = Math.max(60, 3 * (alarm.row - alarm.onset), Math.round(data.n_rows / 60));
  const when = (row, time) => (time === null || time === undefined ? `row ${whole(row)}` : readableTime(time));
  const zoom = h(
    "button",
    { type: "button", class: "linklike", onclick: () => go([alarm.onset - room, alarm.row + room]) },
    when(alarm.row, alarm.time),
  );
  const since = alarm.onset === alarm.row ? "" : when(alarm.onset, alarm.onset_time);
  return h(
    "tr",
    {},
    h("td", {}, h("span", { class: `badge ${alarm.kind}` }, alarm.kind)),
    h("td", {}, zoom),
    h(
      "td",
      { class: "what", title: alarm.message },
      `${alarm.variables.join(", ")} ${howMuch(alarm)}`,
      since && h("span", { class: "since small soft" }, `since ${since}`),
    ),
  );
}
