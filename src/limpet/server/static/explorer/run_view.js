// The results of one setting: key figures, charts, alarms.

import { h } from "../common/dom.js";
import { formatNumber, formatInteger } from "../common/format.js";
import { createPanels } from "../charts/chart.js";
import { readableTime } from "../charts/axis.js";

/** A run without results, to show the data alone. */
const EMPTY_RUN = { n_rejected: 0, rejected: [], estimate: null, alarms: [], notes: [], alarms_by: null, score: null };

/** One side. onzoom: called when the user zooms. Returns {element, show(data, run or null, title), setBusy(on), charts()}. */
export function createRunView({ side, sync, onzoom }) {
  const facts = h("dl", { class: "facts", "aria-live": "polite" });
  const notes = h("div", { class: "notes" });
  const container = h("div", { class: "chart-place" });
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
    container,
  );
  let [charts, shape, startedAt, timer] = [null, "", 0, null];

  /** Mark the results as outdated while a run is in progress; after a second, show the elapsed time. */
  function setBusy(on) {
    element.classList.toggle("stale", on);
    element.setAttribute("aria-busy", String(on));
    if (on && timer !== null) return;
    clearInterval(timer);
    timer = null;
    busy.hidden = true;
    if (!on) return;
    startedAt = Date.now();
    timer = setInterval(() => {
      busy.hidden = false;
      busy.textContent = `Running for ${Math.round((Date.now() - startedAt) / 1000)} s. The first run of its kind is compiled, which can take half a minute.`;
    }, 1000);
  }

  function show(data, result, title) {
    const run = result ?? EMPTY_RUN;
    heading.textContent = title;
    facts.replaceChildren(...makeFigures(data, result));
    notes.replaceChildren(...run.notes.map((note) => h("p", { class: "notice small" }, note)));
    const panels = makePanels(data, run, side);
    const now = JSON.stringify([data.id, data.key, panels]);
    const zoomed = charts?.zoomed ?? null;
    if (now !== shape) {
      charts?.destroy();
      charts = createPanels(container, { panels, sync, onzoom, onwindow: (zoomed) => (all.hidden = !zoomed) });
      if (shape && JSON.parse(shape)[0] === data.id && JSON.parse(shape)[1] === data.key) charts.zoomed = zoomed;
      shape = now;
    }
    charts.set({ x: data.rows, times: data.times, data: toChartData(data, run), events: makeEvents(data, run) });
  }
  return { element, show, setBusy, charts: () => charts };
}

function makeFigures(data, run) {
  if (!run) return [h("div", {}, h("dt", {}, "points"), h("dd", {}, formatInteger(data.n_rows)))];
  const share = data.n_rows ? ` (${formatNumber((100 * run.n_rejected) / data.n_rows, 2)} %)` : "";
  const rejected = run.n_rejected === null ? "–" : `${formatInteger(run.n_rejected)}${share}`;
  const facts = [
    [run.n_rows === 1 ? "point" : "points", formatInteger(run.n_rows)],
    ["rejected", rejected, "rejected", run.n_rejected === null ? "this method does not reject points" : undefined],
    run.alarms_by && [run.n_changes === 1 ? "change" : "changes", formatInteger(run.n_changes), "changes"],
    run.alarms_by && [
      run.n_alarms - run.n_changes === 1 ? "anomaly" : "anomalies",
      run.alarms_by === "detector" ? "–" : formatInteger(run.n_alarms - run.n_changes),
      "anomalies",
    ],
    run.mse && [
      "mean squared error",
      run.mse.total === null ? "–" : formatNumber(run.mse.total, 3),
      "mse",
      run.mse.message ??
        `before the first change ${formatNumber(run.mse.before, 3)}, after it ${formatNumber(run.mse.after, 3)}`,
    ],
    run.gamma !== null && run.gamma !== undefined && ["γ", formatNumber(run.gamma, 3)],
    run.rho !== null && run.rho !== undefined && ["ρ", formatNumber(run.rho, 3)],
    run.n_invalid > 0 && ["invalid", formatInteger(run.n_invalid)],
    ["run time", `${formatNumber(run.elapsed_ms, 2)} ms`],
  ];
  return facts
    .filter(Boolean)
    .map(([name, value, id, title]) => h("div", { title }, h("dt", {}, name), h("dd", { "data-fact": id }, value)));
}

function makePanels(data, run, side) {
  const n = data.columns.length;
  const height = n === 1 ? 250 : n === 2 ? 170 : n <= 4 ? 125 : 90;
  const estimate = side === "B" ? "second" : "estimate";
  const events = [
    run.alarms_by && { label: "change", kind: "upright", color: "change" },
    run.p_value && { label: "anomaly", kind: "tick", color: "anomaly" },
    data.change_points.length && { label: "known change", kind: "upright", color: "soft", dash: [5, 4] },
  ].filter(Boolean);
  const ofVariables = data.columns.map((name, v) => ({
    name: `value ${v}`,
    title: name,
    height,
    robustSeries: true,
    legend: v ? [] : events,
    series: [
      { label: "value", kind: "dots", color: "points" },
      { label: run.n_rejected === null ? "" : "rejected", kind: "marks", color: "rejected" },
      ...(data.means?.[v] ?? []).map((_, k) => ({ label: k ? "" : "truth", color: "truth", width: 1, dash: [5, 4] })),
      ...(run.estimate?.[v] ?? []).map((_, k) => ({ label: k ? "" : "estimate", color: estimate, width: 2 })),
    ],
  }));
  if (!run.score) return ofVariables;
  const score = {
    name: "score",
    title: "Score",
    height: 84,
    scale: "asinh",
    series: [{ label: "score", color: "points", width: 1 }],
  };
  if (!run.p_value) return [...ofVariables, score];
  const title = run.alarms_by === "auto" ? "p-value of the automatic learner" : "p-value";
  const rare = { label: "p", kind: "dots", color: "points", size: 1.4 };
  const far = { label: "far", color: "soft", width: 1, dash: [4, 4] };
  const p = { name: "p", title, height: 84, scale: "log", series: [rare, far] };
  const range = (low) => [(low ?? 1e-4) / 1.6, 1.6];
  return [...ofVariables, score, { ...p, range, extraTicks: (u) => [u.data[2]?.[0] ?? 1, 1] }];
}

function toChartData(data, run) {
  const chartData = run.score ? { score: [run.score] } : {};
  data.columns.forEach((_, v) => {
    const rejected = new Array(data.n_rows).fill(null);
    for (const row of run.rejected) rejected[row] = data.values[v][row];
    chartData[`value ${v}`] = [data.values[v], rejected, ...(data.means?.[v] ?? []), ...(run.estimate?.[v] ?? [])];
  });
  if (run.p_value)
    chartData.p = [run.p_value.map((p) => (p === null ? null : Math.max(p, 1e-12))), data.rows.map(() => run.far)];
  return chartData;
}

function makeEvents(data, run) {
  const known = data.change_points.map((row) => ({ kind: "known", row }));
  return [...known, ...run.alarms.map(({ kind, row, onset }) => ({ kind, row, from: onset }))];
}

/** The alarms, newest last; a click calls onSelect([first, last]) to zoom. */
export function createAlarmList(onSelect) {
  const body = h("tbody", {});
  const description = h("p", { class: "small soft" });
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
          ["Kind", "Time", "Variables and size"].map((title) => h("th", { scope: "col" }, title)),
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
    description,
    table,
    summary,
  );
  return {
    element,
    show(data, run) {
      if (!run) {
        description.textContent = "";
        table.hidden = summary.hidden = true;
        return;
      }
      description.textContent = describeRun(run);
      description.hidden = !description.textContent;
      table.hidden = !run.alarms.length;
      body.replaceChildren(...run.alarms.slice(-500).map((alarm) => alarmRow(alarm, data, onSelect)));
      summary.textContent = run.summary ?? "";
      summary.hidden = !run.summary;
    },
  };
}

function describeRun(run) {
  const by =
    run.alarms_by === "auto"
      ? "The paper's algorithm raises no alarms; these are of the automatic learner at this false-alarm rate. "
      : "";
  if (!run.alarms_by) return "This method returns scores and raises no alarms.";
  if (!run.alarms.length) return `${by}No alarm.`;
  const left = Math.max(run.n_alarms - Math.min(run.alarms.length, 500), 0);
  return (
    by + (left ? `The last ${formatInteger(Math.min(run.alarms.length, 500))} of ${formatInteger(run.n_alarms)}.` : "")
  );
}

function formatSize({ direction, size }) {
  if (size === null) return direction;
  return direction === "up" || direction === "down"
    ? `${direction} by ${formatNumber(size, 3)} sd`
    : `${direction}, spread × ${formatNumber(size, 3)}`;
}

function alarmRow(alarm, data, onSelect) {
  const margin = Math.max(60, 3 * (alarm.row - alarm.onset), Math.round(data.n_rows / 60));
  const when = (row, time) => (time === null || time === undefined ? `row ${formatInteger(row)}` : readableTime(time));
  const zoom = h(
    "button",
    { type: "button", class: "linklike", onclick: () => onSelect([alarm.onset - margin, alarm.row + margin]) },
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
      `${alarm.variables.join(", ")} ${formatSize(alarm)}`,
      since && h("span", { class: "since small soft" }, `since ${since}`),
    ),
  );
}
