// Draw points, rings and alarms on a uPlot canvas. Used by chart.js only.

import { cssColor } from "../common/dom.js";

const MAX_CIRCLE_POINTS = 4000; // squares beyond, which are drawn faster

/** Calls `each(px, py, beyond)` for the points in view: canvas pixels, and −1 or 1 where a value is below or above the axis. */
function eachPoint(u, s, i0, i1, each) {
  const [xs, ys] = [u.data[0], u.data[s]];
  const { left, top, width, height } = u.bbox;
  const { min, max, distr } = u.scales[u.series[s].scale];
  const perUnit = height / (max - min || 1);
  const toPixel = distr === 1 ? (y) => top + (max - y) * perUnit : (y) => u.valToPos(y, u.series[s].scale, true); // the first is much faster
  const from = u.scales.x.min;
  const perRow = width / (u.scales.x.max - from || 1);
  for (let i = i0; i <= i1; i++) {
    const y = ys[i];
    if (y === null || y === undefined) continue;
    const px = left + (xs[i] - from) * perRow;
    if (px < left - 1 || px > left + width + 1) continue;
    if (y < min) each(px, top + height, -1);
    else if (y > max) each(px, top, 1);
    else each(px, toPixel(y), 0);
  }
}

/** Tracks painted cells of the canvas, so that points on the same pixels are painted once. */
function makePixelSet(u, size) {
  const nColumns = Math.ceil(u.ctx.canvas.width / size) + 2;
  const painted = new Uint8Array(nColumns * (Math.ceil(u.ctx.canvas.height / size) + 2));
  return (px, py) => {
    const cell = (Math.floor(py / size) + 1) * nColumns + Math.floor(px / size) + 1;
    return painted[cell] ? false : (painted[cell] = 1);
  };
}

function triangle(path, px, py, up, size) {
  const tip = py + (up ? 1 : -1) * 1;
  const base = py + (up ? 1 : -1) * 1.7 * size;
  path.moveTo(px, tip);
  path.lineTo(px - size, base);
  path.lineTo(px + size, base);
  path.closePath();
}

function withClip(u, paint) {
  const { left, top, width, height } = u.bbox;
  u.ctx.save();
  u.ctx.beginPath();
  u.ctx.rect(left, top, width, height);
  u.ctx.clip();
  paint(u.ctx);
  u.ctx.restore();
}

/** Points; a value beyond the axis is a triangle at its edge. */
export function pointsPath(name, size) {
  return (u, s, i0, i1) => {
    withClip(u, (ctx) => {
      const [path, ratio, isDense] = [new Path2D(), devicePixelRatio, i1 - i0 > MAX_CIRCLE_POINTS];
      const claimPixel = makePixelSet(u, isDense ? ratio : 1);
      const radius = ratio * (size ?? Math.min(2.6, Math.max(1.1, (0.22 * u.bbox.width) / ratio / (i1 - i0 + 1))));
      ctx.fillStyle = cssColor(name);
      ctx.globalAlpha = isDense ? 0.75 : 0.9;
      eachPoint(u, s, i0, i1, (px, py, beyond) => {
        if (!claimPixel(px, py)) return;
        if (beyond) triangle(path, px, py, beyond > 0, 2.4 * ratio);
        else if (isDense) ctx.fillRect(px - radius, py - radius, 2 * radius, 2 * radius);
        else {
          path.moveTo(px + radius, py);
          path.arc(px, py, radius, 0, 2 * Math.PI);
        }
      });
      ctx.fill(path);
    });
    return null;
  };
}

/** Rings around rejected points; a value beyond the axis is a triangle at its edge. */
export function ringsPath(name) {
  return (u, s, i0, i1) => {
    withClip(u, (ctx) => {
      const [rings, triangles, ratio, claimPixel] = [new Path2D(), new Path2D(), devicePixelRatio, makePixelSet(u, 2)];
      eachPoint(u, s, i0, i1, (px, py, beyond) => {
        if (!claimPixel(px, py)) return;
        if (beyond) triangle(triangles, px, py, beyond > 0, 3.4 * ratio);
        else {
          rings.moveTo(px + 3.2 * ratio, py);
          rings.arc(px, py, 3.2 * ratio, 0, 2 * Math.PI);
        }
      });
      ctx.strokeStyle = ctx.fillStyle = cssColor(name);
      ctx.lineWidth = 1.5 * ratio;
      ctx.stroke(rings);
      ctx.fill(triangles);
    });
    return null;
  };
}

/** Alarms and known changes, below the lines; `createPanels` documents events. */
export function drawEvents(u, events) {
  withClip(u, (ctx) => {
    const { left, top, width, height } = u.bbox;
    const ratio = devicePixelRatio;
    for (const { kind, from, row, chosen } of events) {
      const [start, end] = [from ?? row, row].map((x) => u.valToPos(x, "x", true));
      if (end < left - 2 || start > left + width + 2) continue;
      ctx.fillStyle = ctx.strokeStyle = cssColor(kind === "known" ? "soft" : kind);
      if (kind === "known") {
        line(ctx, end, top, height, 1 * ratio, 0.75, [5 * ratio, 4 * ratio]);
        continue;
      }
      ctx.globalAlpha = chosen ? 0.3 : 0.16;
      ctx.fillRect(start, top, Math.max(end - start, ratio), height);
      if (kind === "change") line(ctx, end, top, height, (chosen ? 2 : 1.25) * ratio, 0.9, []);
      else tick(ctx, end, top + height, ratio);
    }
  });
}

function line(ctx, px, top, height, width, alpha, dash) {
  ctx.globalAlpha = alpha;
  ctx.lineWidth = width;
  ctx.setLineDash(dash);
  ctx.beginPath();
  ctx.moveTo(px, top);
  ctx.lineTo(px, top + height);
  ctx.stroke();
  ctx.setLineDash([]);
}

/** An anomaly is a short tick at the bottom. */
function tick(ctx, px, bottom, ratio) {
  ctx.globalAlpha = 0.9;
  ctx.fillRect(px - 0.75 * ratio, bottom - 9 * ratio, 1.5 * ratio, 9 * ratio);
}
