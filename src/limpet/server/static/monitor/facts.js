// A stream in figures: the last values of the variables that are shown, how many points, what became of them.

import { ago, few, h, whole } from "../common.js";
import { STATES } from "./row.js";
import { called } from "./variables.js";

const BADGES = { alarming: "change", learning: "plain", quiet: "good" };
const MOST = 4; // values for which there is room

export class Facts {
  constructor() {
    this.state = h("span", { class: "badge" });
    this.element = h("dl", { class: "facts" });
  }

  /** `shown` are the places of the variables that are shown. */
  fill(summary, shown) {
    this.state.className = `badge ${BADGES[summary.state] ?? "plain"}`;
    this.state.textContent = STATES[summary.state] ?? summary.state;
    const facts = factsOf(summary, shown);
    while (this.element.children.length > facts.length) this.element.lastChild.remove();
    while (this.element.children.length < facts.length) this.element.append(h("div", {}, h("dt", {}), h("dd", {})));
    facts.forEach((texts, i) =>
      [...this.element.children[i].children].forEach((place, k) => {
        if (place.textContent !== texts[k]) place.textContent = texts[k];
      }),
    );
  }
}

function factsOf({ n_points, n_rejected, n_alarms, open_alarms, last, p_value, last_seen, variables }, shown) {
  const share = n_points ? ` (${few((100 * n_rejected) / n_points, 2)} %)` : "";
  const values =
    variables.length === 1
      ? [["last value", few(last[0])]]
      : shown.slice(0, MOST).map((j) => [called(variables, j), few(last[j])]);
  return [
    ...values,
    ["p-value", few(p_value, 2)],
    ["points", whole(n_points)],
    ["rejected", `${whole(n_rejected)}${share}`],
    ["alarms", `${whole(n_alarms)}${open_alarms ? ` (${whole(open_alarms)} open)` : ""}`],
    ["last point", ago(last_seen)],
  ];
}
