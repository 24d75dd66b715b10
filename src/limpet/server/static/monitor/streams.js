// The streams in memory: summaries by key, their order in pages of the server, the totals.

import { api } from "../common/api.js";
import { showError } from "../common/dom.js";

const PAGE_SIZE = 100;
const RATE_WINDOW_S = 5;

/** Dispatches "change" for new summaries or a new order, "totals" for new counts, "alarms" for new or changed alarms. */
export class Streams extends EventTarget {
  summaries = new Map();
  order = []; // index → key; sparse where pages are not loaded
  total = 0; // matching the search
  totals = { n_streams: 0, n_alarming: 0, open_alarms: 0 };
  query = { search: "", sort: "alarming" };
  loaded = false;
  orderChanged = false; // whether the order on the server may differ

  #generation = 0;
  #slices = new Map(); // slice → generation of its request
  #view = [0, 0];
  #pointCounts = []; // [time, total number of points]

  /** Load the summaries of a range of indices. */
  ensureLoaded(first, last) {
    this.#view = [first, last];
    const requests = [];
    for (let slice = Math.floor(Math.max(0, first) / PAGE_SIZE); slice * PAGE_SIZE <= Math.max(first, last); slice++) {
      if (this.#slices.get(slice) !== this.#generation) requests.push(this.#fetchPage(slice));
    }
    return Promise.all(requests);
  }

  /** Reload the visible range in the present order. */
  refresh() {
    this.#generation++;
    this.orderChanged = false;
    return this.ensureLoaded(...this.#view);
  }

  choose(query) {
    Object.assign(this.query, query);
    this.#view = [0, PAGE_SIZE - 1];
    return this.refresh();
  }

  async #fetchPage(slice) {
    const generation = this.#generation;
    this.#slices.set(slice, generation);
    const query = new URLSearchParams({ ...this.query, limit: PAGE_SIZE, offset: slice * PAGE_SIZE });
    try {
      const page = await api(`/streams?${query}`);
      if (generation !== this.#generation) return;
      this.#storePage(slice, page);
    } catch (error) {
      this.#slices.delete(slice);
      if (this.loaded && error instanceof TypeError)
        this.orderChanged = true; // no connection: retried when it is back
      else showError(error);
    }
  }

  #storePage(slice, page) {
    this.total = page.total;
    this.order.length = page.total;
    page.streams.forEach((summary, i) => {
      this.summaries.set(summary.key, summary);
      this.order[slice * PAGE_SIZE + i] = summary.key;
    });
    this.loaded = true;
    this.#updateTotals(page);
    this.dispatchEvent(new Event("change"));
  }

  #updateTotals({ n_streams, n_alarming, open_alarms, n_points }) {
    const before = this.totals;
    this.totals = { n_streams, n_alarming, open_alarms };
    this.#pointCounts.push([performance.now(), n_points]);
    this.dispatchEvent(new Event("totals"));
    if (before.open_alarms !== open_alarms) this.dispatchEvent(new CustomEvent("alarms", { detail: [] }));
  }

  /** Apply an event of the list. */
  apply(data) {
    const withNewAlarms = [];
    let alarms = false;
    for (const summary of data.streams) {
      const old = this.summaries.get(summary.key);
      this.summaries.set(summary.key, summary);
      if (this.#changesOrder(old, summary)) this.orderChanged = true;
      if (summary.last_alarm && summary.last_alarm.id !== old?.last_alarm?.id) withNewAlarms.push(summary);
      alarms ||= old?.open_alarms !== summary.open_alarms;
    }
    if (data.is_truncated || data.n_streams !== this.totals.n_streams) this.orderChanged = true;
    this.#updateTotals(data);
    if (withNewAlarms.length || alarms) this.dispatchEvent(new CustomEvent("alarms", { detail: withNewAlarms }));
    this.dispatchEvent(new CustomEvent("change", { detail: data.streams.map((summary) => summary.key) }));
  }

  #changesOrder(old, summary) {
    const { sort } = this.query;
    if (sort === "recent") return true;
    if (sort === "name") return false; // new streams change their number
    if (!old) return summary.state === "alarming"; // not loaded yet, further down in the list
    return old.state !== summary.state || old.last_alarm?.id !== summary.last_alarm?.id;
  }

  remove(key) {
    this.summaries.delete(key);
    this.orderChanged = true;
  }

  /** Points per second over the last few seconds. */
  rate() {
    const now = performance.now();
    const pointCounts = this.#pointCounts;
    while (pointCounts.length > 1 && pointCounts[1][0] < now - RATE_WINDOW_S * 1000) pointCounts.shift();
    if (pointCounts.length < 2) return 0;
    const passed = now - pointCounts[0][0];
    return (1000 * Math.max(0, pointCounts[pointCounts.length - 1][1] - pointCounts[0][1])) / Math.max(passed, 1000);
  }
}
