// The trade-off as a map: γ to the right, ρ upwards, both by factors; the colour is the error, or the theory's bound.

import { colour, few, h } from "../common.js";
import { powersOfTen } from "../charts/axis.js";
import { stepOf, tiedStep } from "./state.js";

const RAMP = [
  [253, 231, 37],
  [109, 205, 89],
  [31, 158, 137],
  [49, 104, 142],
  [68, 40, 90],
]; // good to bad
const DECADES = 2.5; // above the best, beyond which all is bad
const ROOM = { left: 52, right: 10, top: 8, bottom: 34 };

/** Where a run stands on the map: a list of one, or of none. */
export function markOf(run, name) {
  if (!run || run.settings.mode === "rival") return [];
  const [gamma, rho] = run.settings.mode === "hand" ? [run.settings.gamma, stepOf(run.settings)] : [run.gamma, run.rho];
  return gamma && rho ? [{ gamma: Math.min(gamma, 1e6), rho, name }] : [];
}

/** β and M of a setting whose ρ is tied to γ, else nothing. */
export const relationOf = (s) => (s?.mode === "hand" && s.tied ? { beta: s.beta, M: s.M } : null);

/** What the signs on the map mean, and its colours. */
function legend() {
  const scale = h("i", { class: "map-scale", "aria-hidden": "true" });
  const shades = Array.from({ length: 9 }, (_, i) => shade(10 ** ((i / 8) * DECADES), 1));
  scale.style.background = `linear-gradient(to right, ${shades.join(", ")})`;
  const sign = (kind, words) => h("span", {}, h("i", { class: `sign ${kind}`, "aria-hidden": "true" }), words);
  const relation = sign("line", "");
  const allowed = sign("line dotted", "the largest ρ that the theory allows");
  const star = h("span", {}, h("i", { class: "map-star", "aria-hidden": "true" }, "★"), "the best");
  const element = h(
    "p",
    { class: "map-legend small soft" },
    h("span", {}, "least ", scale, ` ${Math.round(10 ** DECADES)} times that and more`),
    sign("marks", "the setting"),
    star,
    relation,
    allowed,
  );
  const show = (map, { beta, M }) => {
    relation.lastChild.textContent = `the paper's relation, β = ${few(beta, 3)}, M = ${few(M, 3)}`;
    allowed.hidden = !map.limits;
    star.hidden = !map.best;
    element.hidden = false;
  };
  element.hidden = true;
  return { element, show };
}

/** pick(gamma, rho) is called on a click. Returns {element, show(map), mark(points, relation in force or null), redraw()}. */
export function tradeMap(pick) {
  const canvas = h("canvas", { class: "map", tabIndex: 0, role: "img" });
  const told = h("p", { class: "small numbers", "aria-live": "polite" });
  const assumed = h("p", { class: "small soft" });
  const title = h("p", { class: "small soft" });
  const best = h("button", { type: "button", hidden: true }, "Take the best");
  const signs = legend();
  const element = h(
    "section",
    { class: "card trade", "aria-label": "The trade-off" },
    h("div", { class: "row" }, h("h2", {}, "The trade-off"), h("span", { class: "end" }, best)),
    title,
    h("div", { class: "map-place" }, canvas),
    signs.element,
    told,
    assumed,
  );
  let [map, marks, tied] = [null, [], null];
  const redraw = () => {
    if (!map) return;
    signs.show(map, tied ?? map.relation);
    draw(canvas, map, marks, tied ?? map.relation);
  };
  best.addEventListener("click", () => pick(map.best.gamma, map.best.rho));
  canvas.addEventListener("click", (event) => map && pick(...inverse(canvas, map, event)));
  canvas.addEventListener(
    "mousemove",
    (event) => map && (told.textContent = wordsAt(map, ...inverse(canvas, map, event))),
  );
  canvas.addEventListener("mouseleave", () => (told.textContent = map ? usualWords(map) : ""));
  canvas.addEventListener("keydown", (event) => onKey(event, map, marks, pick));
  new ResizeObserver(redraw).observe(canvas);
  document.addEventListener("themechange", redraw);
  return {
    element,
    redraw,
    show(found) {
      map = found;
      element.classList.remove("waiting");
      title.textContent = `${map.title}: γ to the right, ρ upwards. A click takes the pair.`;
      told.textContent = usualWords(map);
      assumed.textContent = map.assumed;
      best.hidden = !map.best;
      canvas.setAttribute("aria-label", `${map.title} over γ and ρ. ${usualWords(map)} Arrows move the pair.`);
      redraw();
    },
    waiting() {
      element.classList.add("waiting");
      if (!map) title.textContent = "Being computed …";
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

function usualWords(map) {
  return map.best
    ? `Least at γ = ${few(map.best.gamma, 3)}, ρ = ${few(map.best.rho, 3)}: ${few(map.best.value, 3)}.`
    : "Least without any threshold.";
}

const ends = (values) => [values[0], values[values.length - 1]];

function nearestCell(values, x) {
  const [low, high] = ends(values);
  const share = Math.log(x / low) / Math.log(high / low);
  return Math.min(Math.max(Math.round(share * (values.length - 1)), 0), values.length - 1);
}

function wordsAt(map, gamma, rho) {
  const value = map.values[nearestCell(map.gammas, gamma)][nearestCell(map.rhos, rho)];
  return `γ = ${few(gamma, 3)}, ρ = ${few(rho, 3)}: ${map.kind === "mse" ? "error" : "bound"} ${few(value, 3)}`;
}

/** From values to pixels: half a cell of room around the outermost ones. */
function scales(width, height, map) {
  const along = (values, from, to) => {
    const [low, high] = ends(values).map(Math.log);
    const half = (high - low) / (values.length - 1) / 2;
    const factor = (to - from) / (high - low + 2 * half);
    return {
      to: (x) => from + (Math.log(x) - low + half) * factor,
      back: (px) => Math.exp((px - from) / factor + low - half),
      low: Math.exp(low - half),
      high: Math.exp(high + half),
    };
  };
  return { x: along(map.gammas, ROOM.left, width - ROOM.right), y: along(map.rhos, height - ROOM.bottom, ROOM.top) };
}

function inverse(canvas, map, event) {
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

function shade(value, least) {
  if (value === null) return "transparent";
  const bad = Math.min(Math.max(Math.log10(value / least) / DECADES, 0), 1) ** 0.7;
  const place = bad * (RAMP.length - 1);
  const [first, share] = [
    Math.min(Math.floor(place), RAMP.length - 2),
    place - Math.min(Math.floor(place), RAMP.length - 2),
  ];
  return `rgb(${RAMP[first].map((c, i) => Math.round(c + share * (RAMP[first + 1][i] - c))).join(" ")})`;
}

function draw(canvas, map, marks, { beta, M }) {
  const [width, height, ratio] = [canvas.clientWidth, canvas.clientHeight, devicePixelRatio];
  if (!width) return;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const ctx = canvas.getContext("2d");
  ctx.scale(ratio, ratio);
  const { x, y } = scales(width, height, map);
  const least = Math.min(...map.values.flat().filter((value) => value !== null && value > 0));
  const edges = (values) =>
    [...values, 0].map(
      (_, i) =>
        (i < values.length ? values[i] : values[i - 1]) * (values[1] / values[0]) ** (i < values.length ? -0.5 : 0.5),
    );
  const [xs, ys] = [edges(map.gammas).map(x.to), edges(map.rhos).map(y.to)];
  map.values.forEach((row, i) =>
    row.forEach((value, j) => {
      ctx.fillStyle = shade(value, least);
      ctx.fillRect(xs[i], ys[j + 1], xs[i + 1] - xs[i] + 0.6, ys[j] - ys[j + 1] + 0.6);
    }),
  );
  axes(ctx, x, y, width, height);
  ctx.save();
  ctx.beginPath();
  ctx.rect(ROOM.left, ROOM.top, width - ROOM.left - ROOM.right, height - ROOM.top - ROOM.bottom);
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
  if (map.best) star(ctx, x.to(map.best.gamma), y.to(map.best.rho));
  const inX = (px) => Math.min(Math.max(px, ROOM.left + 6), width - ROOM.right - 6);
  const inY = (py) => Math.min(Math.max(py, ROOM.top + 6), height - ROOM.bottom - 6);
  for (const { gamma, rho, name } of marks) ring(ctx, inX(x.to(gamma)), inY(y.to(rho)), name);
  ctx.restore();
}

function axes(ctx, x, y, width, height) {
  ctx.fillStyle = colour("soft");
  ctx.font = "12px system-ui, sans-serif";
  ctx.textAlign = "center";
  for (const tick of new Set([2, 5, 20, 50, ...powersOfTen(x.low, x.high, 9)])) {
    if (tick >= x.low && tick <= x.high) ctx.fillText(few(tick), x.to(tick), height - ROOM.bottom + 15);
  }
  ctx.fillText("γ", (ROOM.left + width - ROOM.right) / 2, height - 4);
  ctx.textAlign = "right";
  for (const tick of powersOfTen(y.low, y.high)) ctx.fillText(few(tick), ROOM.left - 6, y.to(tick) + 4);
  ctx.fillText("ρ", 14, (ROOM.top + height - ROOM.bottom) / 2);
}

/** White on black, to be seen on every colour. */
function twice(ctx, path, width, dash = []) {
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
  twice(ctx, path, 1.5, dash);
}

function star(ctx, px, py) {
  const path = new Path2D();
  for (let i = 0; i < 10; i++) {
    const [angle, radius] = [(Math.PI * i) / 5 - Math.PI / 2, i % 2 ? 3.2 : 8];
    path[i ? "lineTo" : "moveTo"](px + radius * Math.cos(angle), py + radius * Math.sin(angle));
  }
  path.closePath();
  twice(ctx, path, 1);
  ctx.fillStyle = "#fff";
  ctx.fill(path);
}

function ring(ctx, px, py, name) {
  const path = new Path2D();
  path.arc(px, py, 6, 0, 2 * Math.PI);
  twice(ctx, path, 2.5);
  if (!name) return;
  ctx.textAlign = "left";
  ctx.font = "600 12px system-ui, sans-serif";
  ctx.lineWidth = 3;
  ctx.strokeStyle = "rgb(0 0 0 / .65)";
  ctx.strokeText(name, px + 9, py - 6);
  ctx.fillStyle = "#fff";
  ctx.fillText(name, px + 9, py - 6);
}
