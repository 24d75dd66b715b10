// Key figures of a stream: last values of the variables that are shown, counts of points and alarms.

import { h } from "../common/dom.js";
import { formatAge, formatNumber, formatInteger } from "../common/format.js";
import { STATE_LABELS } from "./stream_row.js";
import { variableLabel } from "./variables.js";

const STATE_BADGES = { alarming: "change", learning: "plain", quiet: "good" };
const MAX_VALUES = 4;

export class KeyFigures {
  constructor() {
    this.state = h("span", { class: "badge" });
    this.element = h("dl", { class: "facts" });
  }

  /** `shown` are the indices of the variables that are shown. */
  fill(summary, shown) {
    this.state.className = `badge ${STATE_BADGES[summary.state] ?? "plain"}`;
    this.state.textContent = STATE_LABELS[summary.state] ?? summary.state;
    const facts = makeFigures(summary, shown);
    while (this.element.children.length > facts.length) this.element.lastChild.remove();
    while (this.element.children.length < facts.length) this.element.append(h("div", {}, h("dt", {}), h("dd", {})));
    facts.forEach((pair, i) =>
      [...this.element.children[i].children].forEach((cell, k) => {
        if (cell.textContent !== pair[k]) cell.textContent = pair[k];
      }),
    );
  }
}

function makeFigures({ n_points, n_rejected, n_alarms, open_alarms, last, p_value, last_seen, variables }, shown) {
  const share = n_points ? ` (${formatNumber((100 * n_rejected) / n_points, 2)} %)` : "";
  const values =
    variables.length === 1
      ? [["last value", formatNumber(last[0])]]
      : shown.slice(0, MAX_VALUES).map((j) => [variableLabel(variables, j), formatNumber(last[j])]);
  return [
    ...values,
    ["p-value", formatNumber(p_value, 2)],
    ["points", formatInteger(n_points)],
    ["rejected", `${formatInteger(n_rejected)}${share}`],
    ["alarms", `${formatInteger(n_alarms)}${open_alarms ? ` (${formatInteger(open_alarms)} open)` : ""}`],
    ["last point", formatAge(last_seen)],
  ];
}
