// Ranges and labels of axes. Used by chart.js only.

import { formatNumber } from "../common/format.js";
import { toUtcText } from "./timezone.js";

const MAX_SAMPLE_POINTS = 4000; // for the quantiles of the range

/** The range of the values in view; a few outliers do not determine it. */
export function robustRange(ys, i0, i1) {
  const stride = Math.max(1, Math.floor((i1 - i0 + 1) / MAX_SAMPLE_POINTS));
  const sample = [];
  let [low, high] = [Infinity, -Infinity];
  for (let i = i0; i <= i1; i++) {
    const y = ys[i];
    if (y === null || y === undefined) continue;
    if (y < low) low = y;
    if (y > high) high = y;
    if ((i - i0) % stride === 0) sample.push(y);
  }
  if (high < low) return [0, 1];
  sample.sort((a, b) => a - b);
  const at = (share) => sample[Math.round(share * (sample.length - 1))];
  const [low1, high99] = sample.length > 20 ? [at(0.01), at(0.99)] : [low, high];
  const margin = 0.25 * (high99 - low1);
  const hasOutliers = high - low > 3 * (high99 - low1 + 2 * margin) && high99 > low1;
  if (hasOutliers) [low, high] = [Math.max(low, low1 - margin), Math.min(high, high99 + margin)];
  return padRange(low, high);
}

export function padRange(low, high) {
  const margin = 0.06 * (high - low) || Math.abs(high) * 0.1 || 1;
  return [low - margin, high + margin];
}

/** Ticks of a logarithmic or asinh axis: powers of ten, every second or third of many, and 0. */
export function powersOfTen(min, max, maxTicks = 5) {
  const exponents = (low, high) => {
    const [first, last] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
    const step = Math.ceil((last - first + 1) / maxTicks);
    return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => first + i).filter(
      (power) => (last - power) % step === 0,
    );
  };
  if (min > 0) return exponents(min, max).map((power) => 10 ** power);
  const below = min < -1 ? exponents(1, -min).map((power) => -(10 ** power)) : [];
  const above = max > 1 ? exponents(1, max).map((power) => 10 ** power) : [];
  const margin = 0.2 * (Math.asinh(max) - Math.asinh(min));
  return [...below.reverse(), 0, ...above].filter((tick) => tick === 0 || Math.asinh(Math.abs(tick)) > margin);
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

/** A time in short form: ISO 8601 without zero seconds, in UTC if it has a zone; numbers with few digits; other strings unchanged. */
export function readableTime(time) {
  if (time === null || time === undefined) return "";
  if (typeof time === "number") return formatNumber(time, 7);
  const text = toUtcText(String(time));
  const parts = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d(?:\.\d+)?)?/.exec(text);
  if (!parts) return text.length > 24 ? `${text.slice(0, 23)}…` : text;
  const seconds = (parts[3] ?? "").replace(/\.0+$/, "").slice(0, 7);
  return `${parts[1]} ${parts[2]}${seconds === ":00" ? "" : seconds}`;
}

/**
 * Labels of ticks: times without the date if all are of one day, dates alone if all are at midnight.
 * null if neighbouring labels would be equal: row numbers are more informative then.
 */
export function timeLabels(times) {
  const read = times.map(readableTime);
  const dated = read.filter((text) => /^\d{4}-\d\d-\d\d /.test(text));
  if (!dated.length || dated.length < read.filter(Boolean).length) {
    const labels = typeof times.find((time) => time !== null) === "string" ? varyingParts(times) : read;
    return hasRepeats(labels) ? null : labels;
  }
  const days = new Set(dated.map((text) => text.slice(0, 10)));
  if (days.size === 1) return dropParts(read.map((text) => text.slice(11)));
  const midnight = dated.every((text) => text.endsWith("00:00"));
  const years = new Set(dated.map((text) => text.slice(0, 4)));
  const dates = read.map((text) => text.slice(0, 10));
  if (midnight || years.size > 1) return hasRepeats(dates) ? read.map((text) => text.slice(0, 16)) : dates;
  return days.size === dated.length ? read.map((text) => text.slice(5, 10)) : read.map((text) => text.slice(5, 16));
}

const hasRepeats = (labels) => labels.some((text, i) => text && text === labels[i - 1]);

/** Strings without the words at their beginning and end that all share: of "01.03.2026 10:00" the time, if all are of one day. */
function varyingParts(times) {
  const words = times.map((time) => (time === null ? [] : String(time).trim().split(/\s+/)));
  const full = words.filter((words) => words.length);
  const shared = (at) => full.every((words) => words.length > 1 && words.at(at) === full[0].at(at));
  while (full.length > 1 && shared(0)) full.forEach((words) => words.shift());
  while (full.length > 1 && shared(-1)) full.forEach((words) => words.pop());
  return words.map((words) => words.join(" ").slice(0, 19));
}

/** Times without fractions of a second, where they remain distinct. */
function dropParts(clocks) {
  const plain = clocks.map((text) => text.replace(/\.\d+$/, ""));
  return new Set(plain).size === new Set(clocks).size ? plain : clocks;
}
