// A row of the list of streams; it is reused for the stream at its index.

import { h } from "../common/dom.js";
import { formatAge, formatNumber, formatInteger } from "../common/format.js";
import { drawSparkline } from "./sparkline.js";
import { variableLabel } from "./variables.js";

export const STATE_LABELS = { alarming: "alarming", learning: "learning", quiet: "quiet" };
const RECENT_POINT_S = 15; // maximum age for which the p-value is shown

export const streamHref = (key) => `#stream=${encodeURIComponent(key)}`;

export function makeRow() {
  const row = {
    mark: h("span", { class: "mark" }),
    state: h("span", { class: "sr" }),
    name: h("span", { class: "name" }),
    note: h("span", { class: "note small" }),
    canvas: h("canvas", { class: "spark", "aria-hidden": "true" }),
    variableLabel: h("span", { class: "variable" }),
    moreLabel: h("span", { class: "others" }),
    value: h("span", { class: "value numbers" }),
    age: h("span", { class: "age small numbers" }),
    summary: null,
  };
  row.anchor = h(
    "a",
    { class: "stream", tabindex: "-1" },
    row.mark,
    h("span", { class: "words" }, h("span", { class: "first" }, row.name, row.state), row.note),
    h("span", { class: "picture" }, row.canvas, row.variableLabel),
    h("span", { class: "figures" }, row.value, row.moreLabel, row.age),
  );
  row.slot = h("div", { class: "slot", role: "listitem" }, row.anchor);
  return row;
}

/** Fill the row; without a summary it is being loaded. */
export function fillRow(row, summary) {
  if (row.summary === summary && summary) return updateAge(row);
  row.summary = summary;
  row.anchor.classList.toggle("waiting", !summary);
  if (!summary) {
    row.anchor.removeAttribute("href");
    for (const part of [row.name, row.note, row.value, row.age, row.state, row.variableLabel, row.moreLabel])
      part.textContent = "";
    row.mark.className = "mark";
    row.canvas.getContext("2d").clearRect(0, 0, row.canvas.width, row.canvas.height);
    return;
  }
  row.anchor.href = streamHref(summary.key);
  row.anchor.title = summary.key;
  row.mark.className = `mark ${summary.state}`;
  row.state.textContent = `, ${STATE_LABELS[summary.state] ?? summary.state}`;
  row.name.textContent = summary.key;
  row.note.replaceChildren(...note(summary));
  row.note.classList.toggle("raised", summary.open_alarms > 0);
  row.value.textContent = summary.last?.length ? formatNumber(summary.last[0]) : "–";
  const { variables } = summary;
  row.anchor.classList.toggle("several", variables.length > 1); // shows which variable the value belongs to
  row.variableLabel.textContent = variables.length > 1 ? variableLabel(variables, 0) : "";
  row.moreLabel.textContent = variables.length > 1 ? `and ${formatInteger(variables.length - 1)} more` : "";
  updateAge(row);
  drawSparkline(row.canvas, summary.sparkline ?? [], summary.sparkline_rejected ?? []);
}

/** Show the p-value of a recent point, else the age of the last point. */
export function updateAge(row) {
  const { summary } = row;
  if (!summary) return;
  const isOld = Date.now() / 1000 - summary.last_seen > RECENT_POINT_S;
  row.age.textContent =
    isOld || summary.p_value === null ? formatAge(summary.last_seen) : `p ${formatNumber(summary.p_value, 2)}`;
  row.age.title = isOld ? "Since the last point" : "p-value of the last point";
}

function note(summary) {
  const points = `${formatInteger(summary.n_points)} ${summary.n_points === 1 ? "point" : "points"}`;
  if (!summary.open_alarms) return [summary.state === "learning" ? `${points} · learning` : points];
  const count = summary.open_alarms > 1 ? [h("b", { class: "count" }, formatInteger(summary.open_alarms)), " "] : [];
  return [...count, (summary.last_alarm?.message ?? "alarm").replace(" standard deviations", " sd")];
}
