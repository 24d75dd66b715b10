// A sparkline: the latest values as a line, rejected ones as dots.

import { cssColor } from "../common/dom.js";

export function drawSparkline(canvas, values, rejected) {
  const ratio = devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
  if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  const present = values.filter((value) => value !== null);
  if (!present.length || !width) return;

  const rejectedRows = new Set(rejected);
  const [low, high] = range(values, rejectedRows, present);
  const x = (i) => 3 + (i / Math.max(values.length - 1, 1)) * (width - 6);
  const y = (value) => height - 4 - Math.min(1, Math.max(0, (value - low) / (high - low || 1))) * (height - 8);
  pen.lineWidth = 1.25;
  pen.lineJoin = "round";
  pen.strokeStyle = cssColor("points");
  pen.beginPath();
  let penDown = false;
  values.forEach((value, i) => {
    if (value === null) penDown = false;
    else if (!rejectedRows.has(i)) {
      if (penDown) pen.lineTo(x(i), y(value));
      else pen.moveTo(x(i), y(value));
      penDown = true;
    }
  });
  pen.stroke();
  pen.fillStyle = cssColor("rejected");
  for (const i of rejectedRows) {
    if (values[i] === null || values[i] === undefined) continue;
    pen.beginPath();
    pen.arc(x(i), y(values[i]), 2, 0, 7);
    pen.fill();
  }
  const last = values.length - 1;
  if (values[last] === null || rejectedRows.has(last)) return;
  pen.fillStyle = cssColor("estimate");
  pen.beginPath();
  pen.arc(x(last), y(values[last]), 2, 0, 7);
  pen.fill();
}

/** The range of the accepted values; rejected values far outside are drawn at the edge. */
function range(values, rejectedRows, present) {
  const inliers = values.filter((value, i) => value !== null && !rejectedRows.has(i));
  const reference = inliers.length ? inliers : present;
  const [low, high] = [Math.min(...reference), Math.max(...reference)];
  const margin = (high - low) * 0.35;
  return [Math.max(Math.min(...present), low - margin), Math.min(Math.max(...present), high + margin)];
}
