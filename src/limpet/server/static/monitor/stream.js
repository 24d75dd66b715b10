// One stream in full: what it is, its charts live, its alarms, what was learnt, how to post to it.

import { api, h, tell } from "../common.js";
import { AlarmList } from "./alarms.js";
import { StreamCharts } from "./charts.js";
import { Facts } from "./facts.js";
import { Feed, SPANS } from "./feed.js";
import { askToDelete, back, nothingHere } from "./gone.js";
import { learnt } from "./learnt.js";
import { curlLine, example, line } from "./post.js";
import { segments } from "./segments.js";
import { Variables } from "./variables.js";

const PACE = 200; // ms between two drawings
const ROOM = 40; // rows that are shown before and after an alarm
let known = null; // the settings of the server

/** Asks for them once; without them there is no promise to draw. */
const settingsOnce = () => (known ??= api("/settings").catch(() => (known = null) ?? {}));

export class StreamView {
  paused = false;
  #span = "500";
  #alarms = [];
  #chosen = null;
  #timer = null;
  #gone = false;

  constructor(key, { streams, leave }) {
    Object.assign(this, { key, streams, leave, path: `/streams/${encodeURIComponent(key)}` });
    this.element = h(
      "article",
      { class: "stack whole", "aria-label": `Stream ${key}` },
      h("p", { class: "soft" }, "Loading…"),
    );
    this.feed = new Feed(key, {
      changed: () => this.#soon(),
      alarm: (alarm) => this.list.put(alarm),
      alarms: () => this.list.load(),
      reset: () => this.open(),
      failed: tell,
    });
    this.list = new AlarmList({
      stream: key,
      open: false,
      changed: (alarms) => this.#mark(alarms),
      choose: (id) => this.#choose(id),
      show: (alarm) => this.#show(alarm).catch(tell),
    });
    this.onchange = ({ detail }) => detail?.includes(key) && this.#update(streams.known.get(key));
    this.onlook = () => (document.hidden ? this.feed.rest() : this.#gone || !this.charts || this.feed.resume());
    streams.addEventListener("change", this.onchange);
    document.addEventListener("visibilitychange", this.onlook);
    this.ticking = setInterval(() => this.charts && this.#fill(), 1000);
    this.open();
  }

  async open() {
    try {
      const [whole, settings] = await Promise.all([api(this.path), settingsOnce()]);
      this.far = settings.far;
      if (this.closed) return;
      this.#gone = false;
      this.summary = whole;
      const first = !this.charts;
      this.#build(whole);
      if (first && document.activeElement !== document.body) this.title.focus({ preventScroll: true }); // for the keyboard, and so that the list may move again
      await Promise.all([this.#begin(), this.list.load()]);
    } catch (error) {
      if (error.status === 404) this.#missing();
      else tell(error);
    }
  }

  #build({ variables, summary, last }) {
    this.title = h("h1", { tabIndex: -1 }, this.key);
    this.facts = new Facts();
    this.variables = new Variables(variables, () => this.charts && this.#redo());
    this.pause = h(
      "button",
      { type: "button", class: "small pause", "aria-pressed": "false", onclick: () => this.#pause() },
      "Pause",
    );
    this.spans = segments("Points shown", { 500: "Last 500", 2000: "Last 2,000", all: "All" }, this.#span, (span) =>
      this.#choosespan(span).catch(tell),
    );
    this.unzoom = h(
      "button",
      { type: "button", class: "small unzoom", hidden: true, onclick: () => this.charts.zoom(null) },
      "Zoom out",
    );
    const place = h("div", { class: "place" });
    this.chartsCard = h(
      "section",
      { class: "card charts-card", "aria-label": "Charts" },
      this.variables.element,
      place,
    );
    this.element.replaceChildren(
      h(
        "header",
        { class: "row title" },
        back(),
        this.title,
        this.facts.state,
        h("div", { class: "end row" }, this.unzoom, this.spans, this.pause),
      ),
      this.facts.element,
      this.chartsCard,
      h(
        "section",
        { class: "card" },
        h("div", { class: "row" }, h("h2", {}, "Alarms"), h("div", { class: "end" }, this.list.all)),
        this.list.element,
      ),
      learnt(this.path, summary),
      h(
        "section",
        { class: "card stack tight" },
        h("h2", {}, "Post to it"),
        line(curlLine(this.key, example(variables, last)), "a curl command that posts to this stream"),
      ),
      h("div", { class: "row" }, this.#deleting()),
    );
    this.charts?.destroy();
    this.charts = new StreamCharts(place, this.key, {
      far: this.far,
      onwindow: (zoomed) => {
        this.unzoom.hidden = !zoomed;
        this.#soon(); // of fewer rows there is more to see
      },
    });
    this.#fill();
  }

  #deleting() {
    const done = () => {
      this.streams.forget(this.key);
      this.leave();
    };
    const ask = () => askToDelete({ key: this.key, path: this.path, nPoints: this.summary.n_points, done });
    return h("button", { type: "button", class: "quiet small danger", onclick: ask }, "Delete this stream…");
  }

  #fill() {
    this.facts.fill(this.summary, this.variables.shown);
  }

  /** Other variables are shown. */
  #redo() {
    this.#fill();
    this.draw();
  }

  #update(summary) {
    if (this.#gone || !this.charts) return this.#gone && this.open();
    const before = this.summary;
    this.summary = { ...before, ...summary };
    if (summary.n_points < before.n_points || summary.variables.length !== before.variables.length) return this.open(); // deleted, and begun anew
    this.#fill();
    if (summary.open_alarms !== before.open_alarms || summary.n_alarms !== before.n_alarms) this.list.load();
  }

  // Charts

  #soon() {
    if (this.paused) return;
    this.#timer ??= setTimeout(() => this.draw(), PACE);
  }

  draw() {
    clearTimeout(this.#timer);
    this.#timer = null;
    if (this.closed || !this.charts || this.#gone) return;
    const { shown, names: variables } = this.variables;
    this.charts.draw(this.feed.buffer, { variables, shown, alarms: this.#alarms, chosen: this.#chosen });
  }

  #mark(alarms) {
    this.#alarms = alarms;
    if (!this.charts) return;
    this.variables.follow(alarms);
    this.#soon();
  }

  #choose(id) {
    this.#chosen = id;
    this.draw();
  }

  /** Shows where an alarm was: its variables, its rows, in the shortest span that has them. */
  async #show(alarm) {
    const from = alarm.onset ?? alarm.row;
    const spans = Object.keys(SPANS);
    const wanted = spans.find((span) => SPANS[span] > this.feed.buffer.next - from + ROOM);
    this.variables.choose(alarm);
    if (spans.indexOf(wanted) > spans.indexOf(this.#span)) {
      this.spans.press(wanted);
      await this.#choosespan(wanted);
    }
    this.draw();
    const room = Math.max(ROOM, 3 * (alarm.row - from), 20 * this.feed.buffer.widest(from, alarm.row));
    this.charts?.zoom([from - room, alarm.row + room]);
    this.chartsCard.scrollIntoView({ block: "nearest" });
  }

  #pause() {
    this.paused = !this.paused;
    this.pause.textContent = this.paused ? "Go on" : "Pause";
    this.pause.setAttribute("aria-pressed", String(this.paused));
    if (!this.paused) this.draw();
  }

  /** Asks for the points of the span; meanwhile what is drawn is grey. */
  async #begin() {
    const { place } = this.charts;
    place.setAttribute("aria-busy", "true");
    try {
      await this.feed.start(this.summary, SPANS[this.#span]);
      this.draw();
    } finally {
      place.removeAttribute("aria-busy");
    }
  }

  #choosespan(span) {
    this.#span = span;
    this.charts.zoom(null);
    return this.#begin();
  }

  // The end of a stream

  #missing() {
    this.#gone = true;
    this.feed.rest();
    this.charts?.destroy();
    this.charts = null;
    this.element.replaceChildren(...nothingHere(this.key));
  }

  /** The connection is back; points come by themselves. */
  again() {
    if (this.charts) this.list.load();
    else this.open();
  }

  /** Asks whether it is still there; told when streams have gone. */
  async check() {
    if (!this.#gone) await api(this.path).catch((error) => error.status === 404 && this.#missing());
  }

  close() {
    this.closed = true;
    clearTimeout(this.#timer);
    clearInterval(this.ticking);
    this.feed.close();
    this.list.close();
    this.charts?.destroy();
    this.streams.removeEventListener("change", this.onchange);
    document.removeEventListener("visibilitychange", this.onlook);
    this.element.remove();
  }
}
