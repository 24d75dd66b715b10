// A sparkline: the last values as a line, what was rejected as marks.

import { colour } from "../common.js";

export function spark(canvas, values, rejected) {
  const ratio = devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
  if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  const there = values.filter((value) => value !== null);
  if (!there.length || !width) return;

  const rejectedRows = new Set(rejected);
  const [low, high] = range(values, rejectedRows, there);
  const x = (i) => 3 + (i / Math.max(values.length - 1, 1)) * (width - 6);
  const y = (value) => height - 4 - Math.min(1, Math.max(0, (value - low) / (high - low || 1))) * (height - 8);
  pen.lineWidth = 1.25;
  pen.lineJoin = "round";
  pen.strokeStyle = colour("points");
  pen.beginPath();
  let down = false;
  values.forEach((value, i) => {
    if (value === null) down = false;
    else if (!rejectedRows.has(i)) {
      if (down) pen.lineTo(x(i), y(value));
      else pen.moveTo(x(i), y(value));
      down = true;
    }
  });
  pen.stroke();
  pen.fillStyle = colour("rejected");
  for (const i of rejectedRows) {
    if (values[i] === null || values[i] === undefined) continue;
    pen.beginPath();
    pen.arc(x(i), y(values[i]), 2, 0, 7);
    pen.fill();
  }
  const last = values.length - 1;
  if (values[last] === null || rejectedRows.has(last)) return;
  pen.fillStyle = colour("estimate");
  pen.beginPath();
  pen.arc(x(last), y(values[last]), 2, 0, 7);
  pen.fill();
}

/** The line has the height; what was rejected is drawn at the edge where it lies far outside. */
function range(values, rejectedRows, there) {
  const kept = values.filter((value, i) => value !== null && !rejectedRows.has(i));
  const from = kept.length ? kept : there;
  const [low, high] = [Math.min(...from), Math.max(...from)];
  const room = (high - low) * 0.35;
  return [Math.max(Math.min(...there), low - room), Math.min(Math.max(...there), high + room)];
}
