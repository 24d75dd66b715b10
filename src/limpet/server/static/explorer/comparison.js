// The table of differences between two runs.

import { h } from "../common/dom.js";
import { formatNumber, formatInteger } from "../common/format.js";

const SELF_ALARMING = ["self", "detector"]; // methods that raise alarms

const ROWS = [
  ["points rejected", (run) => run.n_rejected, formatInteger],
  ["changes", (run) => (SELF_ALARMING.includes(run.alarms_by) ? run.n_changes : null), formatInteger],
  ["anomalies", (run) => (run.alarms_by === "self" ? run.n_alarms - run.n_changes : null), formatInteger],
  ["mean squared error", (run) => run.mse?.total ?? null, (x) => formatNumber(x, 3)],
  ["… before the first change", (run) => run.mse?.before ?? null, (x) => formatNumber(x, 3)],
  ["… after it", (run) => run.mse?.after ?? null, (x) => formatNumber(x, 3)],
  ["run time, ms", (run) => run.elapsed_ms, (x) => formatNumber(x, 2)],
];

export function createComparison() {
  const body = h("tbody", {});
  const heads = ["A", "B"].map((name) => h("th", { scope: "col" }, name));
  const element = h(
    "section",
    { class: "card", "aria-label": "A and B in numbers", hidden: true },
    h("h2", {}, "A and B in numbers"),
    h(
      "div",
      { class: "wide" },
      h(
        "table",
        { id: "differences" },
        h("thead", {}, h("tr", {}, h("td", {}), heads, h("th", { scope: "col" }, "B − A"))),
        body,
      ),
    ),
  );
  return {
    element,
    show(runs, names) {
      heads.forEach((head, i) => (head.textContent = `${"AB"[i]}: ${names[i]}`));
      body.replaceChildren(
        ...ROWS.map(([name, of, shown]) => [name, of(runs[0]), of(runs[1]), shown])
          .filter(([, a, b]) => a !== null || b !== null)
          .map(([name, a, b, shown]) =>
            h(
              "tr",
              {},
              h("th", { scope: "row" }, name),
              [a, b].map((x) => h("td", {}, x === null ? "–" : shown(x))),
              h("td", {}, difference(a, b, shown)),
            ),
          ),
      );
    },
  };
}

function difference(a, b, shown) {
  if (a === null || b === null) return "";
  return b === a ? "same" : `${b > a ? "+" : "−"}${shown(Math.abs(b - a))}`;
}
