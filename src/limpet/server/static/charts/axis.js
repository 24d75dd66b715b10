// Ranges and labels of axes. Used by chart.js only.

import { few } from "../common.js";
import { inUTC } from "./zone.js";

const SAMPLE = 4000; // values that tell the usual range well enough

/** Limits around the values in view; a few far ones do not squeeze all the others into a line. */
export function usualRange(ys, i0, i1) {
  const stride = Math.max(1, Math.floor((i1 - i0 + 1) / SAMPLE));
  const seen = [];
  let [low, high] = [Infinity, -Infinity];
  for (let i = i0; i <= i1; i++) {
    const y = ys[i];
    if (y === null || y === undefined) continue;
    if (y < low) low = y;
    if (y > high) high = y;
    if ((i - i0) % stride === 0) seen.push(y);
  }
  if (high < low) return [0, 1];
  seen.sort((a, b) => a - b);
  const at = (share) => seen[Math.round(share * (seen.length - 1))];
  const [usualLow, usualHigh] = seen.length > 20 ? [at(0.01), at(0.99)] : [low, high];
  const room = 0.25 * (usualHigh - usualLow);
  const far = high - low > 3 * (usualHigh - usualLow + 2 * room) && usualHigh > usualLow;
  if (far) [low, high] = [Math.max(low, usualLow - room), Math.min(high, usualHigh + room)];
  return padded(low, high);
}

export function padded(low, high) {
  const room = 0.06 * (high - low) || Math.abs(high) * 0.1 || 1;
  return [low - room, high + room];
}

/** Ticks of a logarithmic axis, or one that is so beyond ±1: powers of ten, of many every second or third, and 0. */
export function powersOfTen(min, max, most = 5) {
  const exponents = (low, high) => {
    const [first, last] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
    const every = Math.ceil((last - first + 1) / most);
    return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => first + i).filter(
      (power) => (last - power) % every === 0,
    );
  };
  if (min > 0) return exponents(min, max).map((power) => 10 ** power);
  const below = min < -1 ? exponents(1, -min).map((power) => -(10 ** power)) : [];
  const above = max > 1 ? exponents(1, max).map((power) => 10 ** power) : [];
  const room = 0.2 * (Math.asinh(max) - Math.asinh(min));
  return [...below.reverse(), 0, ...above].filter((tick) => tick === 0 || Math.asinh(Math.abs(tick)) > room);
}

/** The index whose x is nearest. */
export function nearest(xs, x) {
  let [low, high] = [0, xs.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (xs[middle] < x) low = middle;
    else high = middle;
  }
  return high < 0 ? -1 : x - xs[low] <= xs[high] - x ? low : high;
}

/** A time as people read it: ISO 8601 without what goes without saying, in UTC if it has a zone; numbers in few digits; other texts as they are. */
export function readableTime(time) {
  if (time === null || time === undefined) return "";
  if (typeof time === "number") return few(time, 7);
  const text = inUTC(String(time));
  const parts = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d(?:\.\d+)?)?/.exec(text);
  if (!parts) return text.length > 24 ? `${text.slice(0, 23)}…` : text;
  const seconds = (parts[3] ?? "").replace(/\.0+$/, "").slice(0, 7);
  return `${parts[1]} ${parts[2]}${seconds === ":00" ? "" : seconds}`;
}

/**
 * Labels of ticks by the times there: without the date where all are of one day, with the date alone where none has a clock.
 * null where neighbours would have the same label, and rows tell more.
 */
export function timeLabels(times) {
  const read = times.map(readableTime);
  const dated = read.filter((text) => /^\d{4}-\d\d-\d\d /.test(text));
  if (!dated.length || dated.length < read.filter(Boolean).length) {
    const labels = typeof times.find((time) => time !== null) === "string" ? differing(times) : read;
    return repeated(labels) ? null : labels;
  }
  const days = new Set(dated.map((text) => text.slice(0, 10)));
  if (days.size === 1) return withoutParts(read.map((text) => text.slice(11)));
  const midnight = dated.every((text) => text.endsWith("00:00"));
  const years = new Set(dated.map((text) => text.slice(0, 4)));
  const dates = read.map((text) => text.slice(0, 10));
  if (midnight || years.size > 1) return repeated(dates) ? read.map((text) => text.slice(0, 16)) : dates;
  return days.size === dated.length ? read.map((text) => text.slice(5, 10)) : read.map((text) => text.slice(5, 16));
}

const repeated = (labels) => labels.some((text, i) => text && text === labels[i - 1]);

/** Texts without the words at their beginning and end that all share: of "01.03.2026 10:00" the clock, if all are of one day. */
function differing(times) {
  const words = times.map((time) => (time === null ? [] : String(time).trim().split(/\s+/)));
  const full = words.filter((one) => one.length);
  const shared = (at) => full.every((one) => one.length > 1 && one.at(at) === full[0].at(at));
  while (full.length > 1 && shared(0)) full.forEach((one) => one.shift());
  while (full.length > 1 && shared(-1)) full.forEach((one) => one.pop());
  return words.map((one) => one.join(" ").slice(0, 19));
}

/** Clock times without parts of a second, where the seconds tell them apart. */
function withoutParts(clocks) {
  const plain = clocks.map((text) => text.replace(/\.\d+$/, ""));
  return new Set(plain).size === new Set(clocks).size ? plain : clocks;
}
