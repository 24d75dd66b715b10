// The charts of one stream: a panel per variable with data, estimate and rejected points; then score and p-value.

import { createPanels } from "../charts/chart.js";
import { variableLabel } from "./variables.js";

const MIN_P_VALUE = 1e-300; // 0 is not on a logarithmic axis
const MAX_BANDS = 500; // buckets of a band
const MIN_AXIS_P_VALUE = 1e-8; // smaller ones are shown at the edge

export class StreamCharts {
  #group = null;
  #layoutKey = "";

  /** `far` is the false-alarm rate of the server's learners; `onwindow(zoomed)` is called after a change of the zoom. */
  constructor(container, stream, { far = null, onwindow = () => {} } = {}) {
    Object.assign(this, { container, stream, far, onwindow });
  }

  zoom(range) {
    this.#group?.zoom(range);
  }

  /** Draw the buffer: `shown` are indices of variables, `alarms` are marked, the one with the id `chosen` is highlighted. */
  draw(full, { variables, shown, alarms, chosen = null }) {
    const maxBucketSize = full.maxBucketSize(...(this.#group?.zoomed ?? []));
    const isDownsampled = maxBucketSize > 1;
    const inView = this.#group?.zoomed ?? getWindow(full) ?? [0, 0];
    const merged = Math.ceil((inView[1] - inView[0]) / MAX_BANDS / maxBucketSize); // of the largest buckets
    const buffer = isDownsampled ? full.rebucket(Math.max(merged, 1) * maxBucketSize) : full;
    const layoutKey = JSON.stringify([variables, shown, isDownsampled]);
    if (layoutKey !== this.#layoutKey) this.#makePanels(variables, shown, isDownsampled);
    this.#layoutKey = layoutKey;
    // Copies: new points must not change a chart that is drawn, or paused.
    const data = {
      score: [buffer.score.slice()],
      p_value: [
        buffer.p_value.map((p) => (p === null ? null : Math.max(p, MIN_P_VALUE))),
        buffer.rows.map(() => this.far),
      ],
    };
    for (const j of shown) {
      const estimate = buffer.estimateLine(j);
      data[`data ${j}`] = [
        buffer.high[j].slice(),
        estimate,
        buffer.rejectedValues(j, estimate),
        ...(isDownsampled ? [buffer.low[j].slice()] : []),
      ];
    }
    this.#group.set({
      x: buffer.rows.slice(),
      times: buffer.times.some((time) => time !== null) ? buffer.times.slice() : null,
      data,
      events: makeEvents(buffer, alarms, chosen),
      window: getWindow(buffer),
    });
  }

  #makePanels(variables, shown, isDownsampled) {
    const zoomed = this.#group?.zoomed ?? null;
    this.#group?.destroy();
    this.#group = createPanels(this.container, {
      sync: `stream ${this.stream}`,
      onwindow: (zoomed) => this.onwindow(zoomed),
      panels: [
        ...shown.map((j) => makeDataPanel(j, variableLabel(variables, j), isDownsampled, shown.length)),
        {
          name: "score",
          title: "Score",
          height: 84,
          robustSeries: true,
          series: [{ label: "score", kind: "line", color: "points", width: 1.25 }],
        },
        {
          name: "p_value",
          title: "p-value",
          height: 84,
          scale: "log",
          range: (low) => [
            Math.max(Math.min(low ?? 1, 1e-3, (this.far ?? 1) / 2), Math.min(MIN_AXIS_P_VALUE, this.far ?? 1)) / 2,
            1.6,
          ],
          extraTicks: () => [1, this.far ?? 1],
          series: [
            { label: "p", kind: "dots", color: "points", size: 1.4 },
            { label: "far", kind: "line", color: "soft", width: 1, dash: [4, 4] },
          ],
        },
      ],
    });
    if (zoomed) this.#group.zoom(zoomed, true);
  }

  /** The uPlot charts by panel. */
  get charts() {
    return this.#group?.charts ?? {};
  }

  destroy() {
    this.#group?.destroy();
    this.#group = null;
  }
}

function makeDataPanel(j, name, isDownsampled, many) {
  const values = isDownsampled
    ? { kind: "line", color: "points", width: 0.75, band: { to: 4, color: "points" } }
    : { kind: "dots", color: "points" };
  const series = [
    { label: isDownsampled ? "highest" : "value", ...values },
    { label: "estimate", kind: "line", color: "estimate", width: 2, stepped: true },
    { label: "rejected", kind: "marks", color: "rejected" },
  ];
  if (isDownsampled) series.push({ label: "lowest", kind: "line", color: "points", width: 0.75 });
  return {
    name: `data ${j}`,
    title: name,
    height: many > 1 ? 150 : 230,
    robustSeries: isDownsampled ? [1, 4] : true,
    series,
  };
}

function getWindow(buffer) {
  if (!buffer.length) return null;
  return [buffer.rows[0], Math.max(buffer.nextRow - 1, buffer.rows[0] + 1)];
}

/** Events of the alarms, and of further points with an anomaly or a change. */
function makeEvents(buffer, alarms, chosen) {
  const events = alarms.map(({ id, kind, row, onset }) => ({ kind, row, from: onset ?? row, chosen: id === chosen }));
  const alarmRows = new Set(alarms.map(({ row }) => buffer.indexOfRow(row)));
  buffer.rows.forEach((row, i) => {
    if (alarmRows.has(i)) return;
    if (buffer.change[i]) events.push({ kind: "change", row, from: row });
    else if (buffer.anomaly[i]) events.push({ kind: "anomaly", row, from: row });
  });
  return events;
}
