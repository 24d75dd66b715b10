// Fills the buffer of one stream: its history first, then every new point, without gaps or doubles.

import { api } from "../common.js";
import { Buffer } from "./buffer.js";
import { live } from "./live.js";

export const SPANS = { 500: 500, 2000: 2000, all: Infinity };
const LIMIT = 1000;

export class Feed {
  buffer = new Buffer(1);
  #live = null;
  #turn = Promise.resolve(); // one chunk after the other, also when one has to wait for what it misses
  #closed = false;
  #asked = 0; // which start is the latest

  /**
   * `changed()` is called when there is more to see, `alarm(alarm)` for each that came or was changed, `alarms()` when many were;
   * `reset()` when the stream is gone or another one has its name, `failed(error)` when points could not be asked for.
   */
  constructor(key, { changed, alarm, alarms, reset, failed }) {
    this.path = `/streams/${encodeURIComponent(key)}`;
    Object.assign(this, { changed, alarm, alarms, reset, failed });
  }

  /** Starts, or starts again with another span. */
  async start(summary, span) {
    this.#stop();
    const asked = ++this.#asked;
    const first = Number.isFinite(span) ? Math.max(0, summary.n_points - span) : 0;
    const history = await api(`${this.path}/history?first=${first}&buckets=2000`);
    if (this.#closed || asked !== this.#asked) return;
    const buffer = new Buffer(summary.variables.length, { span });
    buffer.load(history);
    this.buffer = buffer;
    this.changed();
    this.resume();
  }

  /** Listens from the row after the last one it has. */
  resume() {
    if (this.#live || this.#closed) return;
    this.#live = live(() => `${this.path}/events?after=${this.buffer.next - 1}`, {
      points: (points) => this.#take(points),
      alarm_changed: (alarm) => this.alarm(alarm),
      alarms_changed: () => this.alarms(),
      deleted: () => this.reset(),
      reset: () => this.reset(),
    });
  }

  /** Lets the connection go while nobody looks: a browser has only few for each server. */
  rest() {
    this.#stop();
  }

  #stop() {
    this.#live?.close();
    this.#live = null;
  }

  #take(points) {
    for (const alarm of points.alarms ?? []) this.alarm(alarm);
    const { buffer } = this;
    this.#turn = this.#turn.then(() => this.#put(buffer, points)).catch(this.failed);
  }

  async #put(buffer, points) {
    while (buffer === this.buffer && buffer.append(points) !== null) {
      const missing = await api(`${this.path}/points?after=${buffer.next - 1}&limit=${LIMIT}`);
      const before = buffer.next;
      buffer.append(missing, { lenient: true });
      if (buffer.next === before) buffer.append(points, { lenient: true }); // rows that the store has let go
    }
    if (buffer === this.buffer) this.changed();
  }

  close() {
    this.#closed = true;
    this.#stop();
  }
}
