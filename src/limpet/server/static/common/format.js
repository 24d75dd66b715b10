// Numbers, times and sentences as text.

/** A message with a capital first letter; names of files and parameters stay unchanged. */
export const capitalize = (text) => (/^[a-z]+[\s,]/.test(text) ? text.slice(0, 1).toUpperCase() + text.slice(1) : text);

/** A number with few digits: 12,345 · 0.0123 · 1.2e-7. */
export function formatNumber(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e7)) {
    return value.toExponential(Math.max(0, digits - 2)).replace(/\.?0*e\+?/, "e");
  }
  return Number(value.toPrecision(digits)).toLocaleString("en-US", {
    maximumSignificantDigits: Math.max(digits, Math.ceil(Math.log10(size + 1))),
  });
}

export const formatInteger = (value) => (value ?? 0).toLocaleString("en-US");

/** A count with its noun: 1 row, 2,000 rows. */
export const pluralize = (n, thing) => `${formatInteger(n)} ${thing}${n === 1 ? "" : "s"}`;

/** The time since a moment, given in seconds since 1970. */
export function formatAge(seconds) {
  if (!seconds) return "never";
  const past = Math.max(0, Date.now() / 1000 - seconds);
  if (past < 2) return "now";
  for (const [unit, size] of [
    ["d", 86400],
    ["h", 3600],
    ["min", 60],
    ["s", 1],
  ]) {
    if (past >= size) return `${Math.floor(past / size)} ${unit} ago`;
  }
}
