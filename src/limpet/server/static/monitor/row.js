// One row of the list: made once, filled again and again with whichever stream is at its place.

import { ago, few, h, whole } from "../common.js";
import { spark } from "./spark.js";
import { called } from "./variables.js";

export const STATES = { alarming: "alarming", learning: "still learning", quiet: "quiet" };
const FRESH = 15; // seconds within which the last point counts as one of now

export const link = (key) => `#stream=${encodeURIComponent(key)}`;

export function makeRow() {
  const row = {
    mark: h("span", { class: "mark" }),
    state: h("span", { class: "sr" }),
    name: h("span", { class: "name" }),
    note: h("span", { class: "note small" }),
    canvas: h("canvas", { class: "spark", "aria-hidden": "true" }),
    which: h("span", { class: "variable" }),
    others: h("span", { class: "others" }),
    value: h("span", { class: "value numbers" }),
    age: h("span", { class: "age small numbers" }),
    summary: null,
  };
  row.anchor = h(
    "a",
    { class: "stream", tabindex: "-1" },
    row.mark,
    h("span", { class: "words" }, h("span", { class: "first" }, row.name, row.state), row.note),
    h("span", { class: "picture" }, row.canvas, row.which),
    h("span", { class: "figures" }, row.value, row.others, row.age),
  );
  row.slot = h("div", { class: "slot", role: "listitem" }, row.anchor);
  return row;
}

/** Fills the row; without a summary it is a place that is being asked for. */
export function fillRow(row, summary) {
  if (row.summary === summary && summary) return ageRow(row);
  row.summary = summary;
  row.anchor.classList.toggle("waiting", !summary);
  if (!summary) {
    row.anchor.removeAttribute("href");
    for (const part of [row.name, row.note, row.value, row.age, row.state, row.which, row.others])
      part.textContent = "";
    row.mark.className = "mark";
    row.canvas.getContext("2d").clearRect(0, 0, row.canvas.width, row.canvas.height);
    return;
  }
  row.anchor.href = link(summary.key);
  row.anchor.title = summary.key;
  row.mark.className = `mark ${summary.state}`;
  row.state.textContent = `, ${STATES[summary.state] ?? summary.state}`;
  row.name.textContent = summary.key;
  row.note.replaceChildren(...note(summary));
  row.note.classList.toggle("raised", summary.open_alarms > 0);
  row.value.textContent = summary.last?.length ? few(summary.last[0]) : "–";
  const { variables } = summary;
  row.anchor.classList.toggle("several", variables.length > 1); // which of them the value and the line are of is said then
  row.which.textContent = variables.length > 1 ? called(variables, 0) : "";
  row.others.textContent = variables.length > 1 ? `and ${whole(variables.length - 1)} more` : "";
  ageRow(row);
  spark(row.canvas, summary.spark ?? [], summary.spark_rejected ?? []);
}

/** Says the p-value of a point of now, else how long ago the last point was. */
export function ageRow(row) {
  const { summary } = row;
  if (!summary) return;
  const old = Date.now() / 1000 - summary.last_seen > FRESH;
  row.age.textContent = old || summary.p_value === null ? ago(summary.last_seen) : `p ${few(summary.p_value, 2)}`;
  row.age.title = old ? "Since the last point" : "p-value of the last point";
}

function note(summary) {
  const points = `${whole(summary.n_points)} ${summary.n_points === 1 ? "point" : "points"}`;
  if (!summary.open_alarms) return [summary.state === "learning" ? `${points} · still learning` : points];
  const count = summary.open_alarms > 1 ? [h("b", { class: "count" }, whole(summary.open_alarms)), " "] : [];
  return [...count, (summary.last_alarm?.message ?? "alarm").replace(" standard deviations", " sd")]; // there is little room
}
