// Times that have a zone are all shown in UTC, so that they agree wherever they stand; a time without one is shown as it is.

const ZONED = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d(?:\.\d+)?)?\s*(Z|[+-]\d\d(?::?\d\d)?)$/i;

/** Whether a time says which zone it is of: ISO 8601 with Z or an offset. */
export const hasZone = (time) => typeof time === "string" && ZONED.test(time);

/** "UTC" if any of the times has a zone, else nothing: what an axis says once. */
export const zoneOf = (times) => (times?.some(hasZone) ? "UTC" : "");

/** A text with a zone as ISO 8601 of UTC without it, parts of a second as they were; any other text as it is. */
export function inUTC(text) {
  const parts = ZONED.exec(text);
  if (!parts || /^(Z|[+-]00(:?00)?)$/i.test(parts[4])) return parts ? text.slice(0, -parts[4].length).trim() : text;
  const [sign, hours, minutes] = [
    parts[4][0] === "-" ? -1 : 1,
    parts[4].slice(1, 3),
    parts[4].slice(3).replace(":", ""),
  ];
  const there = Date.parse(`${parts[1]}T${parts[2]}:00Z`);
  if (Number.isNaN(there)) return text;
  const here = there - sign * (60 * Number(hours) + Number(minutes || 0)) * 60000;
  return `${new Date(here).toISOString().slice(0, 16)}${parts[3] ?? ""}`;
}

/** Seconds since 1970 of a date; without a zone it is taken as UTC, as the server does. Null for other times. */
export function secondsOf(time) {
  if (typeof time !== "string") return null;
  const at = Date.parse(`${inUTC(time).replace(" ", "T")}Z`);
  return Number.isNaN(at) ? null : at / 1000;
}
