// Loads the points of one stream: its history, then every new point, without gaps or duplicates.

import { api } from "../common/api.js";
import { PointBuffer } from "./point_buffer.js";
import { connectEvents } from "./event_stream.js";

export const SPAN_ROWS = { 500: 500, 2000: 2000, all: Infinity };
const FETCH_LIMIT_ROWS = 1000;

export class HistoryLoader {
  buffer = new PointBuffer(1);
  #connection = null;
  #queue = Promise.resolve(); // chunks are appended sequentially, also if one waits for a gap to be filled
  #closed = false;
  #generation = 0; // of the latest start

  /**
   * `onChange()` is called after new points, `onAlarm(alarm)` for each new or changed alarm, `onAlarms()` when several have changed;
   * `onReset()` when the stream was deleted or created again, `onError(error)` when points could not be fetched.
   */
  constructor(key, { onChange, onAlarm, onAlarms, onReset, onError }) {
    this.path = `/streams/${encodeURIComponent(key)}`;
    Object.assign(this, { onChange, onAlarm, onAlarms, onReset, onError });
  }

  /** Load the history, again for another span. */
  async start(summary, span) {
    this.#stop();
    const generation = ++this.#generation;
    const first = Number.isFinite(span) ? Math.max(0, summary.n_points - span) : 0;
    const history = await api(`${this.path}/history?first=${first}&buckets=2000`);
    if (this.#closed || generation !== this.#generation) return;
    const buffer = new PointBuffer(summary.variables.length, { span });
    buffer.load(history);
    this.buffer = buffer;
    this.onChange();
    this.resume();
  }

  /** Subscribe to points after the last row. */
  resume() {
    if (this.#connection || this.#closed) return;
    this.#connection = connectEvents(() => `${this.path}/events?after=${this.buffer.nextRow - 1}`, {
      points: (points) => this.#enqueue(points),
      alarm_changed: (alarm) => this.onAlarm(alarm),
      alarms_changed: () => this.onAlarms(),
      deleted: () => this.onReset(),
      reset: () => this.onReset(),
    });
  }

  /** Close the connection while the page is hidden: browsers limit connections per server. */
  pause() {
    this.#stop();
  }

  #stop() {
    this.#connection?.close();
    this.#connection = null;
  }

  #enqueue(points) {
    for (const alarm of points.alarms ?? []) this.onAlarm(alarm);
    const { buffer } = this;
    this.#queue = this.#queue.then(() => this.#append(buffer, points)).catch(this.onError);
  }

  async #append(buffer, points) {
    while (buffer === this.buffer && buffer.append(points) !== null) {
      const gap = await api(`${this.path}/points?after=${buffer.nextRow - 1}&limit=${FETCH_LIMIT_ROWS}`);
      const before = buffer.nextRow;
      buffer.append(gap, { lenient: true });
      if (buffer.nextRow === before) buffer.append(points, { lenient: true }); // the server no longer has the missing rows
    }
    if (buffer === this.buffer) this.onChange();
  }

  close() {
    this.#closed = true;
    this.#stop();
  }
}
