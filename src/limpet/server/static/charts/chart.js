// Panels of charts, one above the other, that share their x: rows of a stream.
//
//   const charts = panels(element, { panels: [PANEL, …], sync: "a name", onzoom: (window | null) => …, onwindow: (zoomed) => …, onrow: (row | null) => … });
//   charts.set({ x, times, data: { panelName: [ys, ys, …] }, events, window });
//
// PANEL = { name, title, height: 180, scale: "linear" | "log" | "asinh", usual: true, range: (low, high) => [low, high], series: [SERIES, …],
//   legend: [{ label, kind: "line" | "upright" | "tick", colour, dash }], also: (uPlot) => [y, …] }
//   legend: what else is drawn, as events are. also: places on a logarithmic axis that always have a label.
//   usual: a few far values of the first series (or of those named, counted from 1) do not stretch the axis; they are shown as triangles at its edge.
// SERIES = { label, kind: "line" | "dots" | "marks" | "none", colour: "estimate" (a name of base.css), width, dash: [4, 3], stepped, size, band: { to: 2, colour } }
//   "marks" are rings (rejected points). "none" is only told under the cursor. band fills down to that series of the panel (counted from 1).
// x: rows, ascending. times: of the same length, or null; the axis shows them where there are any. ys: of the same length, null is a gap.
// events: [{ kind: "change" | "anomaly" | "known", row, from, chosen }]: a change is a line with a band from its onset; an anomaly a tick; "known" is dashed.
// window: [first, last] rows in view when nobody has zoomed; by default all. `set` may leave out what stays the same.
//
// Drag (or two fingers) to zoom, double click (or Escape, 0) for all, + − and arrows when focused. Charts with one `sync` share the cursor.
// onzoom is called when somebody zooms here, onwindow whenever it is or is no longer zoomed, onrow with the row under the cursor.
// charts.zoom([first, last] | null) · charts.zoomed · charts.charts[name].data (what uPlot has) · charts.redraw() · charts.destroy()

import { colour, few, h, whole } from "../common.js";
import { nearest, padded, powersOfTen, readableTime, timeLabels, usualRange } from "./axis.js";
import { dots, marks, paintEvents } from "./paint.js";
import { pinch } from "./touch.js";
import { hasZone, zoneOf } from "./zone.js";

const SCALES = { linear: {}, log: { distr: 3, log: 10 }, asinh: { distr: 4, asinh: 1 } };
const AXIS = 58; // pixels left of every chart, so that they stand in line
let count = 0;

export function panels(container, { panels: wanted, sync = `charts ${++count}`, onzoom, onwindow, onrow }) {
  const group = { charts: {}, zoomed: null, times: null, zone: "", events: [], window: null, x: [] };
  const where = h("span", { class: "chart-where numbers" });
  const root = h(
    "div",
    {
      class: "charts",
      tabIndex: 0,
      role: "group",
      "aria-label": "Charts. Plus and minus zoom, arrows move, 0 shows all.",
    },
    where,
  );
  container.replaceChildren(root);
  wanted.forEach((panel, nth) => addPanel(group, root, panel, sync, nth === wanted.length - 1));

  /** Tells under the cursor which row that is, in every panel what is there. */
  group.point = (index) => {
    const row = index === null || index === undefined ? null : group.x[index];
    where.textContent =
      row === null || row === undefined
        ? group.zone
        : `row ${whole(row)}${group.times ? ` · ${underCursor(group.times[index])}` : ""}`;
    onrow?.(row ?? null);
  };
  group.zoom = (range, quietly = false) => {
    const all = wholeWindow(group);
    group.zoomed =
      range && all && (range[0] > all[0] || range[1] < all[1])
        ? [Math.max(range[0], all[0]), Math.min(range[1], all[1])]
        : null;
    apply(group);
    root.classList.toggle("zoomed", group.zoomed !== null);
    onwindow?.(group.zoomed !== null);
    if (!quietly) onzoom?.(group.zoomed);
  };
  group.set = ({ x, times, data, events, window }) => {
    if (x !== undefined) group.x = x;
    if (times !== undefined) setTimes(group, where, times);
    if (events !== undefined) group.events = events;
    if (window !== undefined) group.window = window;
    for (const [name, ys] of Object.entries(data ?? {})) group.charts[name]?.setData([group.x, ...ys], false);
    apply(group);
  };
  group.redraw = () => Object.values(group.charts).forEach((chart) => chart.redraw());
  const resized = new ResizeObserver(() => fit(group, root));
  resized.observe(root);
  document.addEventListener("themechange", group.redraw);
  root.addEventListener("keydown", (event) => onKey(group, event));
  group.destroy = () => {
    resized.disconnect();
    document.removeEventListener("themechange", group.redraw);
    Object.values(group.charts).forEach((chart) => chart.destroy());
    root.remove();
  };
  fit(group, root);
  return group;
}

/** While nothing is under the cursor, the zone of the times stands at its place. */
function setTimes(group, where, times) {
  const zone = zoneOf(times) && `times in ${zoneOf(times)}`;
  if (where.textContent === group.zone) where.textContent = zone;
  Object.assign(group, { times, zone });
}

/** A time with its zone, and what the clock of this browser said then. */
function underCursor(time) {
  if (!hasZone(time)) return readableTime(time);
  const here = new Date(time);
  const local = Number.isNaN(here.getTime()) || !here.getTimezoneOffset() ? "" : ` (${here.toLocaleTimeString()} here)`;
  return `${readableTime(time)} UTC${local}`;
}

function wholeWindow({ window, x }) {
  return window ?? (x.length ? [x[0], Math.max(x[x.length - 1], x[0] + 1)] : null);
}

function apply(group) {
  const range = group.zoomed ?? wholeWindow(group) ?? [0, 1];
  for (const chart of Object.values(group.charts)) chart.setScale("x", { min: range[0], max: range[1] });
}

function fit(group, root) {
  const width = root.clientWidth;
  for (const chart of Object.values(group.charts)) {
    if (width > 0 && chart.width !== width) chart.setSize({ width, height: chart.height });
  }
}

function addPanel(group, root, panel, sync, last) {
  const told = h("span", { class: "chart-told numbers" });
  const named = panel.series.length > 1 ? panel.series.filter((one) => one.kind !== "none" && one.label) : [];
  const legend = [...named, ...(panel.legend ?? [])].map(legendOf);
  const place = h(
    "div",
    { class: "chart" },
    h("h3", { class: "chart-title" }, panel.title ?? "", h("span", { class: "chart-legend" }, legend), told),
  );
  root.append(place);
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
      scales: { x: { time: false }, y: { ...SCALES[panel.scale ?? "linear"], range: rangeOf(panel) } },
      axes: [xAxis(group, last), yAxis(panel)],
      series: [{}, ...panel.series.map(seriesOf)],
      bands: panel.series.flatMap(({ band }, i) =>
        band ? [{ series: [i + 1, band.to], fill: () => fade(colour(band.colour), 0.22) }] : [],
      ),
      hooks: {
        drawClear: [(u) => paintEvents(u, group.events)],
        setCursor: [(u) => tellUnder(group, u, panel, told)],
        setSelect: [(u) => onSelect(group, u)],
      },
    },
    [[], ...panel.series.map(() => [])],
    place,
  );
  group.charts[panel.name] = chart;
  pinch(
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

function seriesOf({ label, kind = "line", colour: name = "points", width = 1.75, dash, size, stepped }) {
  const common = { label, scale: "y", points: { show: false }, stroke: () => colour(name), spanGaps: false };
  if (kind === "dots") return { ...common, paths: dots(name, size) };
  if (kind === "marks") return { ...common, paths: marks(name) };
  if (kind === "none") return { ...common, show: true, paths: () => null, auto: false };
  return { ...common, width, dash, ...(stepped ? { paths: uPlot.paths.stepped({ align: 1 }) } : {}) };
}

function legendOf({ label, kind = "line", colour: name = "points", dash }) {
  const sign = h("i", { class: `sign ${kind}${dash ? " dashed" : ""}`, "aria-hidden": "true" });
  sign.style.color = `var(--${name})`;
  return h("span", {}, sign, label);
}

/** The range of the y axis: the usual values of the first series, or all of all. */
function rangeOf({ usual, range, scale }) {
  return (u, low, high) => {
    const empty = low === null || low === undefined || high === null;
    if (range) return range(empty ? null : low, empty ? null : high);
    if (empty) return scale === "log" ? [1e-4, 1] : [0, 1];
    if (scale === "log") return [low / 1.6, high * 1.6];
    if (scale === "asinh") return padded(Math.asinh(low), Math.asinh(high)).map(Math.sinh);
    if (!usual) return padded(low, high);
    const [first, last] = u.series[0].idxs ?? [0, u.data[0].length - 1];
    const ranges = (usual === true ? [1] : usual).map((series) => usualRange(u.data[series], first, last));
    return [Math.min(...ranges.map((one) => one[0])), Math.max(...ranges.map((one) => one[1]))];
  };
}

function xAxis(group, shown) {
  return {
    show: true,
    size: shown ? 30 : 6,
    stroke: () => colour("soft"),
    font: "12px system-ui, sans-serif",
    grid: { stroke: () => colour("rule"), width: 1 },
    ticks: { show: shown, stroke: () => colour("rule"), width: 1, size: 5 },
    space: group.times ? 110 : 80,
    values: (u, ticks) => {
      if (!shown) return ticks.map(() => "");
      const rows = () => ticks.map((tick) => (Number.isInteger(tick) ? whole(tick) : ""));
      if (!group.times) return rows();
      const times = ticks.map((tick) =>
        tick >= group.x[0] && tick <= group.x[group.x.length - 1] ? group.times[nearest(group.x, tick)] : null,
      );
      const labels = timeLabels(times);
      const repeated = labels?.some((text, i) => text && text === labels[i - 1]); // many points of one moment
      return labels && !repeated ? labels : rows();
    },
  };
}

function yAxis({ scale, also }) {
  return {
    size: AXIS,
    stroke: () => colour("soft"),
    font: "12px system-ui, sans-serif",
    grid: { stroke: () => colour("rule"), width: 1 },
    ticks: { stroke: () => colour("rule"), width: 1, size: 4 },
    space: 28,
    ...(scale === "linear" || scale === undefined
      ? {}
      : { splits: (u, axis, min, max) => withAlso(powersOfTen(min, max), also?.(u) ?? [], min, max) }),
    ...(also ? { filter: (u, splits) => splits } : {}),
    values: (u, ticks) => ticks.map((tick) => (tick === null || tick === undefined ? "" : few(tick, 4))),
  };
}

/** Ticks of a logarithmic axis with some that must be there; what is too near to these leaves. */
function withAlso(ticks, also, min, max) {
  const kept = also.filter((y) => y >= min && y <= max);
  if (!kept.length) return ticks;
  const near = (a, b) => Math.abs(Math.log(a / b)) < 0.22 * Math.log(max / min);
  return [...ticks.filter((tick) => !kept.some((y) => near(tick, y))), ...kept].sort((a, b) => a - b);
}

function tellUnder(group, u, panel, told) {
  const index = u.cursor.left >= 0 ? u.cursor.idx : null;
  if (panel.name === Object.keys(group.charts)[0]) group.point(index);
  const known =
    index === null || index === undefined ? [] : panel.series.map((one, i) => [one, u.data[i + 1]?.[index]]);
  told.replaceChildren(
    ...known
      .filter(([one, value]) => one.label && value !== null && value !== undefined)
      .map(([one, value]) => h("span", {}, `${one.label} `, h("b", {}, few(value, 5)))),
  );
}

function onKey(group, event) {
  const all = wholeWindow(group);
  if (!all || event.ctrlKey || event.metaKey || event.altKey) return;
  const [from, to] = group.zoomed ?? all;
  const [middle, half] = [(from + to) / 2, (to - from) / 2];
  const moved = (by) => {
    const shift = Math.min(Math.max(by, all[0] - from), all[1] - to);
    return [from + shift, to + shift];
  };
  const ranges = {
    "+": () => [middle - half / 2, middle + half / 2],
    "=": () => [middle - half / 2, middle + half / 2],
    "-": () => [middle - 2 * half, middle + 2 * half],
    ArrowLeft: () => moved(-half / 2),
    ArrowRight: () => moved(half / 2),
    0: () => null,
    Escape: () => null,
  };
  if (!(event.key in ranges)) return;
  event.preventDefault();
  group.zoom(ranges[event.key]());
}

/** A colour of the style, seen through. */
export function fade(name, alpha) {
  return `color-mix(in srgb, ${name} ${Math.round(100 * alpha)}%, transparent)`;
}
