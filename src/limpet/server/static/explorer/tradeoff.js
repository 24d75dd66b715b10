// The trade-off as a map over γ and ρ, both logarithmic; the color is the error, or the bound of the theory.

import { cssColor, h } from "../common/dom.js";
import { formatNumber } from "../common/format.js";
import { powersOfTen } from "../charts/axis.js";
import { effectiveStep, tiedStep } from "./state.js";

const COLOR_STOPS = [
  [253, 231, 37],
  [109, 205, 89],
  [31, 158, 137],
  [49, 104, 142],
  [68, 40, 90],
]; // from the smallest error
const COLOR_RANGE_DECADES = 2.5; // above the smallest error
const MARGIN_PX = { left: 52, right: 10, top: 8, bottom: 34 };

/** The position of a run on the map, as a list of at most one. */
export function makeMark(run, name) {
  if (!run || run.settings.mode === "baseline") return [];
  const [gamma, rho] =
    run.settings.mode === "manual" ? [run.settings.gamma, effectiveStep(run.settings)] : [run.gamma, run.rho];
  return gamma && rho ? [{ gamma: Math.min(gamma, 1e6), rho, name }] : [];
}

/** β and M of a setting whose ρ is tied to γ, else null. */
export const tiedRelation = (s) => (s?.mode === "manual" && s.tied ? { beta: s.beta, M: s.M } : null);

/** The legend of the map. */
function legend() {
  const scale = h("i", { class: "map-scale", "aria-hidden": "true" });
  const shades = Array.from({ length: 9 }, (_, i) => toColor(10 ** ((i / 8) * COLOR_RANGE_DECADES), 1));
  scale.style.background = `linear-gradient(to right, ${shades.join(", ")})`;
  const sign = (kind, words) => h("span", {}, h("i", { class: `sign ${kind}`, "aria-hidden": "true" }), words);
  const relation = sign("line", "");
  const allowed = sign("line dotted", "largest ρ that the theory allows");
  const star = h("span", {}, h("i", { class: "map-star", "aria-hidden": "true" }, "★"), "best pair");
  const element = h(
    "p",
    { class: "map-legend small soft" },
    h("span", {}, "smallest ", scale, ` ${Math.round(10 ** COLOR_RANGE_DECADES)} times as large and more`),
    sign("marks", "the setting"),
    star,
    relation,
    allowed,
  );
  const show = (map, { beta, M }) => {
    relation.lastChild.textContent = `the paper's relation, β = ${formatNumber(beta, 3)}, M = ${formatNumber(M, 3)}`;
    allowed.hidden = !map.limits;
    star.hidden = !map.best;
    element.hidden = false;
  };
  element.hidden = true;
  return { element, show };
}

/** pick(gamma, rho) is called on a click. Returns {element, show(map), mark(points, relation in force or null), redraw()}. */
export function createTradeoffMap(pick) {
  const canvas = h("canvas", { class: "map", tabIndex: 0, role: "img" });
  const cellText = h("p", { class: "small numbers", "aria-live": "polite" });
  const assumptions = h("p", { class: "small soft" });
  const title = h("p", { class: "small soft" });
  const best = h("button", { type: "button", hidden: true }, "Use the best pair");
  const signs = legend();
  const element = h(
    "section",
    { class: "card trade", "aria-label": "The trade-off" },
    h("div", { class: "row" }, h("h2", {}, "The trade-off"), h("span", { class: "end" }, best)),
    title,
    h("div", { class: "map-place" }, canvas),
    signs.element,
    cellText,
    assumptions,
  );
  let [map, marks, tied] = [null, [], null];
  const redraw = () => {
    if (!map) return;
    signs.show(map, tied ?? map.relation);
    draw(canvas, map, marks, tied ?? map.relation);
  };
  best.addEventListener("click", () => pick(map.best.gamma, map.best.rho));
  canvas.addEventListener("click", (event) => map && pick(...toParameters(canvas, map, event)));
  canvas.addEventListener(
    "mousemove",
    (event) => map && (cellText.textContent = describeCell(map, ...toParameters(canvas, map, event))),
  );
  canvas.addEventListener("mouseleave", () => (cellText.textContent = map ? describeMap(map) : ""));
  canvas.addEventListener("keydown", (event) => onKey(event, map, marks, pick));
  new ResizeObserver(redraw).observe(canvas);
  document.addEventListener("themechange", redraw);
  return {
    element,
    redraw,
    show(result) {
      map = result;
      element.classList.remove("waiting");
      title.textContent = `${map.title} over γ and ρ. Click to use a pair.`;
      cellText.textContent = describeMap(map);
      assumptions.textContent = map.assumptions;
      best.hidden = !map.best;
      canvas.setAttribute("aria-label", `${map.title} over γ and ρ. ${describeMap(map)} Arrows move the pair.`);
      redraw();
    },
    setWaiting() {
      element.classList.add("waiting");
      if (!map) title.textContent = "Computing…";
    },
    mark(points, relation = null) {
      [marks, tied] = [points, relation];
      redraw();
    },
    get map() {
      return map;
    },
  };
}

function describeMap(map) {
  return map.best
    ? `Smallest at γ =  ${formatNumber(map.best.gamma, 3)}, ρ = ${formatNumber(map.best.rho, 3)}: ${formatNumber(map.best.value, 3)}.`
    : "Smallest without a threshold.";
}

const extent = (values) => [values[0], values[values.length - 1]];

function nearestCell(values, x) {
  const [low, high] = extent(values);
  const share = Math.log(x / low) / Math.log(high / low);
  return Math.min(Math.max(Math.round(share * (values.length - 1)), 0), values.length - 1);
}

function describeCell(map, gamma, rho) {
  const value = map.values[nearestCell(map.gammas, gamma)][nearestCell(map.rhos, rho)];
  return `γ = ${formatNumber(gamma, 3)}, ρ = ${formatNumber(rho, 3)}: ${map.kind === "mse" ? "error" : "bound"} ${formatNumber(value, 3)}`;
}

/** Scales from values to pixels, with a margin of half a cell. */
function scales(width, height, map) {
  const along = (values, from, to) => {
    const [low, high] = extent(values).map(Math.log);
    const half = (high - low) / (values.length - 1) / 2;
    const factor = (to - from) / (high - low + 2 * half);
    return {
      to: (x) => from + (Math.log(x) - low + half) * factor,
      back: (px) => Math.exp((px - from) / factor + low - half),
      low: Math.exp(low - half),
      high: Math.exp(high + half),
    };
  };
  return {
    x: along(map.gammas, MARGIN_PX.left, width - MARGIN_PX.right),
    y: along(map.rhos, height - MARGIN_PX.bottom, MARGIN_PX.top),
  };
}

function toParameters(canvas, map, event) {
  const { x, y } = scales(canvas.clientWidth, canvas.clientHeight, map);
  const gamma = Math.min(Math.max(x.back(event.offsetX), x.low), x.high);
  const rho = Math.min(Math.max(y.back(event.offsetY), y.low), y.high, 1);
  return [Number(gamma.toPrecision(3)), Number(rho.toPrecision(3))];
}

function onKey(event, map, marks, pick) {
  const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  if (!map || !(event.key in moves)) return;
  event.preventDefault();
  const now = marks[0] ?? { gamma: map.gammas[0], rho: map.rhos[0] };
  const at = (values, x, by) => values[Math.min(Math.max(nearestCell(values, x) + by, 0), values.length - 1)];
  const [across, up] = moves[event.key];
  pick(Number(at(map.gammas, now.gamma, across).toPrecision(3)), Number(at(map.rhos, now.rho, up).toPrecision(3)));
}

function toColor(value, minValue) {
  if (value === null) return "transparent";
  const bad = Math.min(Math.max(Math.log10(value / minValue) / COLOR_RANGE_DECADES, 0), 1) ** 0.7;
  const position = bad * (COLOR_STOPS.length - 1);
  const [first, share] = [
    Math.min(Math.floor(position), COLOR_STOPS.length - 2),
    position - Math.min(Math.floor(position), COLOR_STOPS.length - 2),
  ];
  return `rgb(${COLOR_STOPS[first].map((c, i) => Math.round(c + share * (COLOR_STOPS[first + 1][i] - c))).join(" ")})`;
}

function draw(canvas, map, marks, { beta, M }) {
  const [width, height, ratio] = [canvas.clientWidth, canvas.clientHeight, devicePixelRatio];
  if (!width) return;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const ctx = canvas.getContext("2d");
  ctx.scale(ratio, ratio);
  const { x, y } = scales(width, height, map);
  const minValue = Math.min(...map.values.flat().filter((value) => value !== null && value > 0));
  const edges = (values) =>
    [...values, 0].map(
      (_, i) =>
        (i < values.length ? values[i] : values[i - 1]) * (values[1] / values[0]) ** (i < values.length ? -0.5 : 0.5),
    );
  const [xs, ys] = [edges(map.gammas).map(x.to), edges(map.rhos).map(y.to)];
  map.values.forEach((row, i) =>
    row.forEach((value, j) => {
      ctx.fillStyle = toColor(value, minValue);
      ctx.fillRect(xs[i], ys[j + 1], xs[i + 1] - xs[i] + 0.6, ys[j] - ys[j + 1] + 0.6);
    }),
  );
  axes(ctx, x, y, width, height);
  ctx.save();
  ctx.beginPath();
  ctx.rect(
    MARGIN_PX.left,
    MARGIN_PX.top,
    width - MARGIN_PX.left - MARGIN_PX.right,
    height - MARGIN_PX.top - MARGIN_PX.bottom,
  );
  ctx.clip();
  if (map.limits)
    curve(
      ctx,
      map.gammas.map((gamma, i) => [x.to(gamma), y.to(Math.max(map.limits[i], 1e-9))]),
      [2, 3],
    );
  const fine = Array.from({ length: 160 }, (_, i) => x.low * (x.high / x.low) ** (i / 159));
  curve(
    ctx,
    fine.map((gamma) => [x.to(gamma), y.to(Math.max(tiedStep(gamma, beta, M), 1e-9))]),
    [],
  );
  if (map.best) drawStar(ctx, x.to(map.best.gamma), y.to(map.best.rho));
  const inX = (px) => Math.min(Math.max(px, MARGIN_PX.left + 6), width - MARGIN_PX.right - 6);
  const inY = (py) => Math.min(Math.max(py, MARGIN_PX.top + 6), height - MARGIN_PX.bottom - 6);
  for (const { gamma, rho, name } of marks) drawRing(ctx, inX(x.to(gamma)), inY(y.to(rho)), name);
  ctx.restore();
}

function axes(ctx, x, y, width, height) {
  ctx.fillStyle = cssColor("soft");
  ctx.font = "12px system-ui, sans-serif";
  ctx.textAlign = "center";
  for (const tick of new Set([2, 5, 20, 50, ...powersOfTen(x.low, x.high, 9)])) {
    if (tick >= x.low && tick <= x.high) ctx.fillText(formatNumber(tick), x.to(tick), height - MARGIN_PX.bottom + 15);
  }
  ctx.fillText("γ", (MARGIN_PX.left + width - MARGIN_PX.right) / 2, height - 4);
  ctx.textAlign = "right";
  for (const tick of powersOfTen(y.low, y.high)) ctx.fillText(formatNumber(tick), MARGIN_PX.left - 6, y.to(tick) + 4);
  ctx.fillText("ρ", 14, (MARGIN_PX.top + height - MARGIN_PX.bottom) / 2);
}

/** White with a dark outline, visible on every color. */
function strokeOutlined(ctx, path, width, dash = []) {
  ctx.setLineDash(dash);
  for (const [style, wide] of [
    ["rgb(0 0 0 / .65)", width + 2],
    ["#fff", width],
  ]) {
    ctx.strokeStyle = style;
    ctx.lineWidth = wide;
    ctx.stroke(path);
  }
  ctx.setLineDash([]);
}

function curve(ctx, points, dash) {
  const path = new Path2D();
  points.forEach(([px, py], i) => (i ? path.lineTo(px, py) : path.moveTo(px, py)));
  strokeOutlined(ctx, path, 1.5, dash);
}

function drawStar(ctx, px, py) {
  const path = new Path2D();
  for (let i = 0; i < 10; i++) {
    const [angle, radius] = [(Math.PI * i) / 5 - Math.PI / 2, i % 2 ? 3.2 : 8];
    path[i ? "lineTo" : "moveTo"](px + radius * Math.cos(angle), py + radius * Math.sin(angle));
  }
  path.closePath();
  strokeOutlined(ctx, path, 1);
  ctx.fillStyle = "#fff";
  ctx.fill(path);
}

function drawRing(ctx, px, py, name) {
  const path = new Path2D();
  path.arc(px, py, 6, 0, 2 * Math.PI);
  strokeOutlined(ctx, path, 2.5);
  if (!name) return;
  ctx.textAlign = "left";
  ctx.font = "600 12px system-ui, sans-serif";
  ctx.lineWidth = 3;
  ctx.strokeStyle = "rgb(0 0 0 / .65)";
  ctx.strokeText(name, px + 9, py - 6);
  ctx.fillStyle = "#fff";
  ctx.fillText(name, px + 9, py - 6);
}
