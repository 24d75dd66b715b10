// Panels of charts, one above the other, that share their x: rows of a stream.
//
//   const charts = createPanels(element, { panels: [PANEL, …], sync: "a name", onzoom: (window | null) => …, onwindow: (zoomed) => …, onrow: (row | null) => … });
//   charts.set({ x, times, data: { panelName: [ys, ys, …] }, events, window });
//
// PANEL = { name, title, height: 180, scale: "linear" | "log" | "asinh", robustSeries: true, range: (low, high) => [low, high], series: [SERIES, …],
//   legend: [{ label, kind: "line" | "upright" | "tick", color, dash }], extraTicks: (uPlot) => [y, …] }
//   legend: further items, such as events. extraTicks: ticks of a logarithmic axis that always have a label.
//   robustSeries: outliers of the first series (or of those listed, counted from 1) do not stretch the axis; they are triangles at its edge.
// SERIES = { label, kind: "line" | "dots" | "marks" | "none", color: "estimate" (a name of base.css), width, dash: [4, 3], stepped, size, band: { to: 2, color } }
//   "marks" are rings (rejected points). "none" is shown under the cursor only. band fills down to that series of the panel (counted from 1).
// x: rows, ascending. times: of the same length, or null. ys: of the same length, null is a gap.
// events: [{ kind: "change" | "anomaly" | "known", row, from, chosen }]: a change is a line with a band from its onset; an anomaly a tick; "known" is dashed.
// window: [first, last] rows in view without zoom; by default all. `set` may leave out what is unchanged.
//
// Drag (or two fingers) to zoom, double click (or Escape, 0) for all, + − and arrows when focused. Charts with one `sync` share the cursor.
// onzoom is called when the user zooms these charts, onwindow after every change of the zoom, onrow with the row under the cursor.
// charts.zoom([first, last] | null) · charts.zoomed · charts.charts[name].data (what uPlot has) · charts.redraw() · charts.destroy()

import { cssColor, h } from "../common/dom.js";
import { formatNumber, formatInteger } from "../common/format.js";
import { nearest, padRange, powersOfTen, readableTime, timeLabels, robustRange } from "./axis.js";
import { pointsPath, ringsPath, drawEvents } from "./overlays.js";
import { enablePinchZoom } from "./touch_zoom.js";
import { hasZone, getTimezoneLabel } from "./timezone.js";

const UPLOT_SCALES = { linear: {}, log: { distr: 3, log: 10 }, asinh: { distr: 4, asinh: 1 } };
const AXIS_WIDTH_PX = 58; // the same for all charts, so that they are aligned
let count = 0;

export function createPanels(container, { panels: specs, sync = `charts ${++count}`, onzoom, onwindow, onrow }) {
  const group = { charts: {}, zoomed: null, times: null, zone: "", events: [], window: null, x: [] };
  const cursorLabel = h("span", { class: "chart-where numbers" });
  const root = h(
    "div",
    {
      class: "charts",
      tabIndex: 0,
      role: "group",
      "aria-label": "Charts. Plus and minus zoom, arrows move, 0 shows all.",
    },
    cursorLabel,
  );
  container.replaceChildren(root);
  specs.forEach((panel, index) => addPanel(group, root, panel, sync, index === specs.length - 1));

  /** Show the row under the cursor. */
  group.showRow = (index) => {
    const row = index === null || index === undefined ? null : group.x[index];
    cursorLabel.textContent =
      row === null || row === undefined
        ? group.zone
        : `row ${formatInteger(row)}${group.times ? ` · ${formatCursorTime(group.times[index])}` : ""}`;
    onrow?.(row ?? null);
  };
  group.zoom = (range, silent = false) => {
    const all = fullRange(group);
    group.zoomed =
      range && all && (range[0] > all[0] || range[1] < all[1])
        ? [Math.max(range[0], all[0]), Math.min(range[1], all[1])]
        : null;
    applyRange(group);
    root.classList.toggle("zoomed", group.zoomed !== null);
    onwindow?.(group.zoomed !== null);
    if (!silent) onzoom?.(group.zoomed);
  };
  group.set = ({ x, times, data, events, window }) => {
    if (x !== undefined) group.x = x;
    if (times !== undefined) setTimes(group, cursorLabel, times);
    if (events !== undefined) group.events = events;
    if (window !== undefined) group.window = window;
    for (const [name, ys] of Object.entries(data ?? {})) group.charts[name]?.setData([group.x, ...ys], false);
    applyRange(group);
  };
  group.redraw = () => Object.values(group.charts).forEach((chart) => chart.redraw());
  const resized = new ResizeObserver(() => resize(group, root));
  resized.observe(root);
  document.addEventListener("themechange", group.redraw);
  root.addEventListener("keydown", (event) => onKey(group, event));
  group.destroy = () => {
    resized.disconnect();
    document.removeEventListener("themechange", group.redraw);
    Object.values(group.charts).forEach((chart) => chart.destroy());
    root.remove();
  };
  resize(group, root);
  return group;
}

/** The cursor label shows the timezone while no row is under the cursor. */
function setTimes(group, cursorLabel, times) {
  const zone = getTimezoneLabel(times) && `times in ${getTimezoneLabel(times)}`;
  if (cursorLabel.textContent === group.zone) cursorLabel.textContent = zone;
  Object.assign(group, { times, zone });
}

/** A time with its timezone, and the same in the timezone of the browser. */
function formatCursorTime(time) {
  if (!hasZone(time)) return readableTime(time);
  const date = new Date(time);
  const local = Number.isNaN(date.getTime()) || !date.getTimezoneOffset() ? "" : ` (${date.toLocaleTimeString()} here)`;
  return `${readableTime(time)} UTC${local}`;
}

function fullRange({ window, x }) {
  return window ?? (x.length ? [x[0], Math.max(x[x.length - 1], x[0] + 1)] : null);
}

function applyRange(group) {
  const range = group.zoomed ?? fullRange(group) ?? [0, 1];
  for (const chart of Object.values(group.charts)) chart.setScale("x", { min: range[0], max: range[1] });
}

function resize(group, root) {
  const width = root.clientWidth;
  for (const chart of Object.values(group.charts)) {
    if (width > 0 && chart.width !== width) chart.setSize({ width, height: chart.height });
  }
}

function addPanel(group, root, panel, sync, last) {
  const valueLabel = h("span", { class: "chart-values numbers" });
  const labeledSeries =
    panel.series.length > 1 ? panel.series.filter((series) => series.kind !== "none" && series.label) : [];
  const legend = [...labeledSeries, ...(panel.legend ?? [])].map(makeLegendItem);
  const container = h(
    "div",
    { class: "chart" },
    h("h3", { class: "chart-title" }, panel.title ?? "", h("span", { class: "chart-legend" }, legend), valueLabel),
  );
  root.append(container);
  const chart = new uPlot(
    {
      width: Math.max(root.clientWidth, 200),
      height: (panel.height ?? 160) + (last ? 24 : 0),
      padding: [6, 30, last ? 0 : 6, 0],
      legend: { show: false },
      cursor: {
        sync: {
          key: sync,
          scales: ["x", null],
          filters: { pub: (type) => type === "mousemove" || type === "mouseleave" },
        },
        drag: { x: true, y: false, dist: 5, setScale: false },
        points: { show: false },
        y: false,
        bind: { dblclick: () => () => group.zoom(null) },
      },
      scales: { x: { time: false }, y: { ...UPLOT_SCALES[panel.scale ?? "linear"], range: makeRange(panel) } },
      axes: [xAxis(group, last), yAxis(panel)],
      series: [{}, ...panel.series.map(makeSeries)],
      bands: panel.series.flatMap(({ band }, i) =>
        band ? [{ series: [i + 1, band.to], fill: () => withAlpha(cssColor(band.color), 0.22) }] : [],
      ),
      hooks: {
        drawClear: [(u) => drawEvents(u, group.events)],
        setCursor: [(u) => showValues(group, u, panel, valueLabel)],
        setSelect: [(u) => onSelect(group, u)],
      },
    },
    [[], ...panel.series.map(() => [])],
    container,
  );
  group.charts[panel.name] = chart;
  enablePinchZoom(
    chart.over,
    () => [chart.scales.x.min, chart.scales.x.max],
    (range) => group.zoom(range),
  );
}

function onSelect(group, u) {
  const { left, width } = u.select;
  if (width > 3) group.zoom([u.posToVal(left, "x"), u.posToVal(left + width, "x")]);
  u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
}

function makeSeries({ label, kind = "line", color: name = "points", width = 1.75, dash, size, stepped }) {
  const common = { label, scale: "y", points: { show: false }, stroke: () => cssColor(name), spanGaps: false };
  if (kind === "dots") return { ...common, paths: pointsPath(name, size) };
  if (kind === "marks") return { ...common, paths: ringsPath(name) };
  if (kind === "none") return { ...common, show: true, paths: () => null, auto: false };
  return { ...common, width, dash, ...(stepped ? { paths: uPlot.paths.stepped({ align: 1 }) } : {}) };
}

function makeLegendItem({ label, kind = "line", color: name = "points", dash }) {
  const sign = h("i", { class: `sign ${kind}${dash ? " dashed" : ""}`, "aria-hidden": "true" });
  sign.style.color = `var(--${name})`;
  return h("span", {}, sign, label);
}

/** The range of the y axis: robust for the chosen series, else of all values. */
function makeRange({ robustSeries, range, scale }) {
  return (u, low, high) => {
    const empty = low === null || low === undefined || high === null;
    if (range) return range(empty ? null : low, empty ? null : high);
    if (empty) return scale === "log" ? [1e-4, 1] : [0, 1];
    if (scale === "log") return [low / 1.6, high * 1.6];
    if (scale === "asinh") return padRange(Math.asinh(low), Math.asinh(high)).map(Math.sinh);
    if (!robustSeries) return padRange(low, high);
    const [first, last] = u.series[0].idxs ?? [0, u.data[0].length - 1];
    const ranges = (robustSeries === true ? [1] : robustSeries).map((series) =>
      robustRange(u.data[series], first, last),
    );
    return [Math.min(...ranges.map((series) => series[0])), Math.max(...ranges.map((series) => series[1]))];
  };
}

function xAxis(group, shown) {
  return {
    show: true,
    size: shown ? 30 : 6,
    stroke: () => cssColor("soft"),
    font: "12px system-ui, sans-serif",
    grid: { stroke: () => cssColor("rule"), width: 1 },
    ticks: { show: shown, stroke: () => cssColor("rule"), width: 1, size: 5 },
    space: group.times ? 110 : 80,
    values: (u, ticks) => {
      if (!shown) return ticks.map(() => "");
      const rows = () => ticks.map((tick) => (Number.isInteger(tick) ? formatInteger(tick) : ""));
      if (!group.times) return rows();
      const times = ticks.map((tick) =>
        tick >= group.x[0] && tick <= group.x[group.x.length - 1] ? group.times[nearest(group.x, tick)] : null,
      );
      const labels = timeLabels(times);
      const repeated = labels?.some((text, i) => text && text === labels[i - 1]); // points of equal times
      return labels && !repeated ? labels : rows();
    },
  };
}

function yAxis({ scale, extraTicks }) {
  return {
    size: AXIS_WIDTH_PX,
    stroke: () => cssColor("soft"),
    font: "12px system-ui, sans-serif",
    grid: { stroke: () => cssColor("rule"), width: 1 },
    ticks: { stroke: () => cssColor("rule"), width: 1, size: 4 },
    space: 28,
    ...(scale === "linear" || scale === undefined
      ? {}
      : { splits: (u, axis, min, max) => withExtraTicks(powersOfTen(min, max), extraTicks?.(u) ?? [], min, max) }),
    ...(extraTicks ? { filter: (u, splits) => splits } : {}),
    values: (u, ticks) => ticks.map((tick) => (tick === null || tick === undefined ? "" : formatNumber(tick, 4))),
  };
}

/** Ticks of a logarithmic axis with extra ones; those too near to an extra tick are removed. */
function withExtraTicks(ticks, extraTicks, min, max) {
  const extra = extraTicks.filter((y) => y >= min && y <= max);
  if (!extra.length) return ticks;
  const near = (a, b) => Math.abs(Math.log(a / b)) < 0.22 * Math.log(max / min);
  return [...ticks.filter((tick) => !extra.some((y) => near(tick, y))), ...extra].sort((a, b) => a - b);
}

function showValues(group, u, panel, valueLabel) {
  const index = u.cursor.left >= 0 ? u.cursor.idx : null;
  if (panel.name === Object.keys(group.charts)[0]) group.showRow(index);
  const values =
    index === null || index === undefined ? [] : panel.series.map((series, i) => [series, u.data[i + 1]?.[index]]);
  valueLabel.replaceChildren(
    ...values
      .filter(([series, value]) => series.label && value !== null && value !== undefined)
      .map(([series, value]) => h("span", {}, `${series.label} `, h("b", {}, formatNumber(value, 5)))),
  );
}

function onKey(group, event) {
  const all = fullRange(group);
  if (!all || event.ctrlKey || event.metaKey || event.altKey) return;
  const [from, to] = group.zoomed ?? all;
  const [middle, half] = [(from + to) / 2, (to - from) / 2];
  const shifted = (by) => {
    const shift = Math.min(Math.max(by, all[0] - from), all[1] - to);
    return [from + shift, to + shift];
  };
  const ranges = {
    "+": () => [middle - half / 2, middle + half / 2],
    "=": () => [middle - half / 2, middle + half / 2],
    "-": () => [middle - 2 * half, middle + 2 * half],
    ArrowLeft: () => shifted(-half / 2),
    ArrowRight: () => shifted(half / 2),
    0: () => null,
    Escape: () => null,
  };
  if (!(event.key in ranges)) return;
  event.preventDefault();
  group.zoom(ranges[event.key]());
}

/** A color with transparency. */
export function withAlpha(name, alpha) {
  return `color-mix(in srgb, ${name} ${Math.round(100 * alpha)}%, transparent)`;
}
