// Times with a timezone are shown in UTC; times without one are shown unchanged.

const ZONED_TIME_PATTERN = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d(?:\.\d+)?)?\s*(Z|[+-]\d\d(?::?\d\d)?)$/i;

/** Whether a time has a timezone: ISO 8601 with Z or an offset. */
export const hasZone = (time) => typeof time === "string" && ZONED_TIME_PATTERN.test(time);

/** The label of an axis: "UTC" if any of the times has a timezone, else empty. */
export const getTimezoneLabel = (times) => (times?.some(hasZone) ? "UTC" : "");

/** A time with a timezone as ISO 8601 in UTC, without the suffix; any other string unchanged. */
export function toUtcText(text) {
  const parts = ZONED_TIME_PATTERN.exec(text);
  if (!parts || /^(Z|[+-]00(:?00)?)$/i.test(parts[4])) return parts ? text.slice(0, -parts[4].length).trim() : text;
  const [sign, hours, minutes] = [
    parts[4][0] === "-" ? -1 : 1,
    parts[4].slice(1, 3),
    parts[4].slice(3).replace(":", ""),
  ];
  const local = Date.parse(`${parts[1]}T${parts[2]}:00Z`);
  if (Number.isNaN(local)) return text;
  const utc = local - sign * (60 * Number(hours) + Number(minutes || 0)) * 60000;
  return `${new Date(utc).toISOString().slice(0, 16)}${parts[3] ?? ""}`;
}

/** Seconds since 1970 of a date, in UTC unless it has a timezone; null for other times. */
export function toUnixSeconds(time) {
  if (typeof time !== "string") return null;
  const at = Date.parse(`${toUtcText(time).replace(" ", "T")}Z`);
  return Number.isNaN(at) ? null : at / 1000;
}
