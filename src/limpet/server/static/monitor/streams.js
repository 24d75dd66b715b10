// What the page knows of the streams: their summaries by key, their order in slices as the server gave it, the totals.

import { api, tell } from "../common.js";

const SLICE = 100;
const SECONDS = 5; // over which the rate of points is taken

/** Says "change" when rows or their order are new, "totals" when the counts are, "alarms" when alarms came or were changed. */
export class Streams extends EventTarget {
  known = new Map();
  order = []; // place in the list → key; places that were not asked for are empty
  total = 0; // how many match the search
  totals = { n_streams: 0, n_alarming: 0, open_alarms: 0 };
  query = { search: "", sort: "alarming" };
  loaded = false;
  moved = false; // whether the server would give another order by now

  #generation = 0;
  #slices = new Map(); // slice → the generation it was asked for in
  #view = [0, 0];
  #counted = []; // when, and how many points there were in all

  /** Sees to it that the summaries of these places are known. */
  need(first, last) {
    this.#view = [first, last];
    const asked = [];
    for (let slice = Math.floor(Math.max(0, first) / SLICE); slice * SLICE <= Math.max(first, last); slice++) {
      if (this.#slices.get(slice) !== this.#generation) asked.push(this.#ask(slice));
    }
    return Promise.all(asked);
  }

  /** Asks again for what is in view, in the order of now. */
  refresh() {
    this.#generation++;
    this.moved = false;
    return this.need(...this.#view);
  }

  choose(query) {
    Object.assign(this.query, query);
    this.#view = [0, SLICE - 1];
    return this.refresh();
  }

  async #ask(slice) {
    const generation = this.#generation;
    this.#slices.set(slice, generation);
    const query = new URLSearchParams({ ...this.query, limit: SLICE, offset: slice * SLICE });
    try {
      const answer = await api(`/streams?${query}`);
      if (generation !== this.#generation) return;
      this.#place(slice, answer);
    } catch (error) {
      this.#slices.delete(slice);
      if (this.loaded && error instanceof TypeError)
        this.moved = true; // no connection: asked again once there is one
      else tell(error);
    }
  }

  #place(slice, answer) {
    this.total = answer.total;
    this.order.length = answer.total;
    answer.streams.forEach((summary, i) => {
      this.known.set(summary.key, summary);
      this.order[slice * SLICE + i] = summary.key;
    });
    this.loaded = true;
    this.#count(answer);
    this.dispatchEvent(new Event("change"));
  }

  #count({ n_streams, n_alarming, open_alarms, n_points }) {
    const before = this.totals;
    this.totals = { n_streams, n_alarming, open_alarms };
    this.#counted.push([performance.now(), n_points]);
    this.dispatchEvent(new Event("totals"));
    if (before.open_alarms !== open_alarms) this.dispatchEvent(new CustomEvent("alarms", { detail: [] }));
  }

  /** Takes in an event of the list. */
  apply(data) {
    const fresh = [];
    let alarms = false;
    for (const summary of data.streams) {
      const old = this.known.get(summary.key);
      this.known.set(summary.key, summary);
      if (this.#moves(old, summary)) this.moved = true;
      if (summary.last_alarm && summary.last_alarm.id !== old?.last_alarm?.id) fresh.push(summary);
      alarms ||= old?.open_alarms !== summary.open_alarms;
    }
    if (data.more || data.n_streams !== this.totals.n_streams) this.moved = true;
    this.#count(data);
    if (fresh.length || alarms) this.dispatchEvent(new CustomEvent("alarms", { detail: fresh }));
    this.dispatchEvent(new CustomEvent("change", { detail: data.streams.map((summary) => summary.key) }));
  }

  #moves(old, summary) {
    const { sort } = this.query;
    if (sort === "recent") return true;
    if (sort === "name") return false; // new ones are noticed by their number
    if (!old) return summary.state === "alarming"; // one that was not asked for so far, far down in the list
    return old.state !== summary.state || old.last_alarm?.id !== summary.last_alarm?.id;
  }

  forget(key) {
    this.known.delete(key);
    this.moved = true;
  }

  /** Points a second over the last few seconds. */
  rate() {
    const now = performance.now();
    const counted = this.#counted;
    while (counted.length > 1 && counted[1][0] < now - SECONDS * 1000) counted.shift();
    if (counted.length < 2) return 0;
    const passed = now - counted[0][0];
    return (1000 * Math.max(0, counted[counted.length - 1][1] - counted[0][1])) / Math.max(passed, 1000);
  }
}
