// The charts of one stream: a panel a variable with the data, the estimate and what was rejected; then score and p-value.

import { panels } from "../charts/chart.js";
import { called } from "./variables.js";

const LEAST = 1e-300; // a p-value of 0 has no place on a logarithmic axis
const BANDS = 500; // places of a band: with more its edges are a thicket
const DEEP = 1e-8; // how far the axis goes down; what lies below is shown at its edge

export class StreamCharts {
  #group = null;
  #made = "";

  /** `far` is the promise of the server's learners; `onwindow(zoomed)` is called when somebody zooms in or out. */
  constructor(place, stream, { far = null, onwindow = () => {} } = {}) {
    Object.assign(this, { place, stream, far, onwindow });
  }

  zoom(range) {
    this.#group?.zoom(range);
  }

  /** Draws the buffer: `shown` are the places of the variables to show, `alarms` those to mark, `chosen` the id of one to point out. */
  draw(whole, { variables, shown, alarms, chosen = null }) {
    const widest = whole.widest(...(this.#group?.zoomed ?? []));
    const condensed = widest > 1;
    const inView = this.#group?.zoomed ?? windowOf(whole) ?? [0, 0];
    const merged = Math.ceil((inView[1] - inView[0]) / BANDS / widest); // of the widest places
    const buffer = condensed ? whole.even(Math.max(merged, 1) * widest) : whole;
    const made = JSON.stringify([variables, shown, condensed]);
    if (made !== this.#made) this.#make(variables, shown, condensed);
    this.#made = made;
    // Copies: a chart that was drawn must not grow under its cursor, least of all when it is paused.
    const data = {
      score: [buffer.score.slice()],
      p_value: [buffer.p_value.map((p) => (p === null ? null : Math.max(p, LEAST))), buffer.rows.map(() => this.far)],
    };
    for (const j of shown) {
      const line = buffer.line(j);
      data[`data ${j}`] = [
        buffer.high[j].slice(),
        line,
        buffer.rejected(j, line),
        ...(condensed ? [buffer.low[j].slice()] : []),
      ];
    }
    this.#group.set({
      x: buffer.rows.slice(),
      times: buffer.times.some((time) => time !== null) ? buffer.times.slice() : null,
      data,
      events: eventsOf(buffer, alarms, chosen),
      window: windowOf(buffer),
    });
  }

  #make(variables, shown, condensed) {
    const zoomed = this.#group?.zoomed ?? null;
    this.#group?.destroy();
    this.#group = panels(this.place, {
      sync: `stream ${this.stream}`,
      onwindow: (zoomed) => this.onwindow(zoomed),
      panels: [
        ...shown.map((j) => dataPanel(j, called(variables, j), condensed, shown.length)),
        {
          name: "score",
          title: "Score",
          height: 84,
          usual: true,
          series: [{ label: "score", kind: "line", colour: "points", width: 1.25 }],
        },
        {
          name: "p_value",
          title: "p-value",
          height: 84,
          scale: "log",
          range: (low) => [
            Math.max(Math.min(low ?? 1, 1e-3, (this.far ?? 1) / 2), Math.min(DEEP, this.far ?? 1)) / 2,
            1.6,
          ],
          also: () => [1, this.far ?? 1],
          series: [
            { label: "p", kind: "dots", colour: "points", size: 1.4 },
            { label: "promise", kind: "line", colour: "soft", width: 1, dash: [4, 4] },
          ],
        },
      ],
    });
    if (zoomed) this.#group.zoom(zoomed, true);
  }

  /** What uPlot shows, by panel. */
  get charts() {
    return this.#group?.charts ?? {};
  }

  destroy() {
    this.#group?.destroy();
    this.#group = null;
  }
}

function dataPanel(j, name, condensed, many) {
  const values = condensed
    ? { kind: "line", colour: "points", width: 0.75, band: { to: 4, colour: "points" } }
    : { kind: "dots", colour: "points" };
  const series = [
    { label: condensed ? "highest" : "value", ...values },
    { label: "estimate", kind: "line", colour: "estimate", width: 2, stepped: true },
    { label: "rejected", kind: "marks", colour: "rejected" },
  ];
  if (condensed) series.push({ label: "lowest", kind: "line", colour: "points", width: 0.75 });
  return { name: `data ${j}`, title: name, height: many > 1 ? 150 : 230, usual: condensed ? [1, 4] : true, series };
}

function windowOf(buffer) {
  if (!buffer.length) return null;
  return [buffer.rows[0], Math.max(buffer.next - 1, buffer.rows[0] + 1)];
}

/** Alarms that are known, and of those that are not, the points at which they were. */
function eventsOf(buffer, alarms, chosen) {
  const events = alarms.map(({ id, kind, row, onset }) => ({ kind, row, from: onset ?? row, chosen: id === chosen }));
  const told = new Set(alarms.map(({ row }) => buffer.at(row)));
  buffer.rows.forEach((row, i) => {
    if (told.has(i)) return;
    if (buffer.change[i]) events.push({ kind: "change", row, from: row });
    else if (buffer.anomaly[i]) events.push({ kind: "anomaly", row, from: row });
  });
  return events;
}
