// One stream in full: what it is, its charts live, its alarms, what was learnt, how to post to it.

import { ago, api, few, h, tell, toast, whole } from "../common.js";
import { AlarmList } from "./alarms.js";
import { called, SHOWN, StreamCharts } from "./charts.js";
import { Feed, SPANS } from "./feed.js";
import { curlLine, example, line } from "./post.js";
import { STATES } from "./row.js";

const PACE = 200; // ms between two drawings
const BADGES = { alarming: "change", learning: "plain", quiet: "good" };

export class StreamView {
  paused = false;
  #span = "500";
  #shown = [];
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
    });
    this.onchange = ({ detail }) => detail?.includes(key) && this.#update(streams.known.get(key));
    this.onlook = () => (document.hidden ? this.feed.rest() : this.#gone || !this.charts || this.feed.resume());
    streams.addEventListener("change", this.onchange);
    document.addEventListener("visibilitychange", this.onlook);
    this.ticking = setInterval(() => this.summary && this.#facts(), 1000);
    this.open();
  }

  async open() {
    try {
      const whole = await api(this.path);
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

  #build({ variables }) {
    this.#shown = variables.slice(0, SHOWN).map((_, j) => j);
    this.title = h("h1", { tabIndex: -1 }, this.key);
    this.state = h("span", { class: "badge" });
    this.facts = h("dl", { class: "facts" });
    this.pause = h(
      "button",
      { type: "button", class: "small pause", "aria-pressed": "false", onclick: () => this.#pause() },
      "Pause",
    );
    this.spans = segments("Points shown", { 500: "Last 500", 2000: "Last 2,000", all: "All" }, this.#span, (span) =>
      this.#choosespan(span),
    );
    this.chips = h("div", { class: "chips row", hidden: variables.length <= SHOWN });
    const place = h("div", { class: "place" });
    this.element.replaceChildren(
      h(
        "header",
        { class: "row title" },
        h("a", { class: "back button small", href: "#" }, "← Streams"),
        this.title,
        this.state,
        h("div", { class: "end row" }, this.spans, this.pause),
      ),
      this.facts,
      h("section", { class: "card charts-card", "aria-label": "Charts" }, this.chips, place),
      h(
        "section",
        { class: "card" },
        h("div", { class: "row" }, h("h2", {}, "Alarms"), h("div", { class: "end" }, this.list.all)),
        this.list.element,
      ),
      this.#learnt(),
      h(
        "section",
        { class: "card stack tight" },
        h("h2", {}, "Post to it"),
        line(curlLine(this.key, example(variables, this.summary.last)), "a curl command that posts to this stream"),
      ),
      h(
        "div",
        { class: "row" },
        h(
          "button",
          { type: "button", class: "quiet small danger", onclick: () => this.#delete() },
          "Delete this stream…",
        ),
      ),
    );
    this.charts?.destroy();
    this.charts = new StreamCharts(place, this.key);
    this.#chipsOf(variables);
    this.#facts();
  }

  /** The learner's own words, asked for while the fold is open. */
  #learnt() {
    const text = h("pre", {}, this.summary.summary ?? "Nothing yet.");
    const fold = h("details", { class: "card" }, h("summary", {}, "What it has learnt"), text);
    const ask = async () => {
      if (!fold.open || this.closed || !fold.isConnected) return;
      const known = await api(this.path).catch(() => null);
      if (known?.summary) text.textContent = known.summary;
      setTimeout(ask, 5000);
    };
    fold.addEventListener("toggle", ask);
    return fold;
  }

  #chipsOf(variables) {
    const toggle = (j) => {
      const shown = this.#shown.includes(j)
        ? this.#shown.filter((i) => i !== j)
        : [...this.#shown, j].sort((a, b) => a - b);
      if (shown.length) this.#shown = shown;
      this.#chipsOf(variables);
      this.draw();
    };
    this.chips.replaceChildren(
      h("span", { class: "soft small" }, "Variables"),
      ...variables.map((_, j) =>
        h(
          "button",
          {
            type: "button",
            class: "chip small",
            "aria-pressed": String(this.#shown.includes(j)),
            onclick: () => toggle(j),
          },
          called(variables, j),
        ),
      ),
    );
  }

  #facts() {
    const { n_points, n_dropped, n_alarms, open_alarms, state, last, p_value, last_seen, variables } = this.summary;
    this.state.className = `badge ${BADGES[state] ?? "plain"}`;
    this.state.textContent = STATES[state] ?? state;
    const share = n_points ? ` (${few((100 * n_dropped) / n_points, 2)} %)` : "";
    const shown =
      variables.length === 1
        ? [["last value", few(last[0])]]
        : variables.slice(0, SHOWN).map((_, j) => [called(variables, j), few(last[j])]);
    const facts = [
      ...shown,
      ["p-value", few(p_value, 2)],
      ["points", whole(n_points)],
      ["rejected", `${whole(n_dropped)}${share}`],
      ["alarms", `${whole(n_alarms)}${open_alarms ? ` (${whole(open_alarms)} open)` : ""}`],
      ["last point", ago(last_seen)],
    ];
    if (this.facts.children.length !== facts.length)
      this.facts.replaceChildren(...facts.map(([name]) => h("div", {}, h("dt", {}, name), h("dd", {}))));
    facts.forEach(([, value], i) => {
      const place = this.facts.children[i].lastChild;
      if (place.textContent !== value) place.textContent = value;
    });
  }

  #update(summary) {
    if (this.#gone || !this.charts) return this.#gone && this.open();
    const before = this.summary;
    this.summary = { ...before, ...summary };
    if (summary.n_points < before.n_points || summary.variables.length !== before.variables.length) return this.open(); // deleted, and begun anew
    this.#facts();
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
    const { variables } = this.summary;
    this.charts.draw(this.feed.buffer, { variables, shown: this.#shown, alarms: this.#alarms, chosen: this.#chosen });
  }

  #mark(alarms) {
    this.#alarms = alarms;
    if (this.charts) this.#soon();
  }

  #choose(id) {
    this.#chosen = id;
    this.draw();
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
    this.#begin().catch(tell);
  }

  // The end of a stream

  #missing() {
    this.#gone = true;
    this.feed.rest();
    this.charts?.destroy();
    this.charts = null;
    this.element.replaceChildren(
      h(
        "header",
        { class: "row title" },
        h("a", { class: "back button small", href: "#" }, "← Streams"),
        h("h1", { tabIndex: -1 }, this.key),
      ),
      h(
        "div",
        { class: "card stack tight" },
        h("p", {}, "There is no stream of this name. It appears as soon as a point is posted:"),
        line(curlLine(this.key), "a curl command that posts to this stream"),
      ),
    );
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

  #delete() {
    const dialog = h("dialog", { class: "stack", "aria-label": "Delete this stream" });
    const go = async () => {
      dialog.close();
      try {
        await api(this.path, { method: "DELETE" });
        this.streams.forget(this.key);
        toast("Deleted.");
        this.leave();
      } catch (error) {
        tell(error);
      }
    };
    dialog.append(
      h("h2", {}, "Delete ", h("span", { class: "key" }, this.key), "?"),
      h(
        "p",
        {},
        `Its ${whole(this.summary.n_points)} points, its alarms and notes, and what was learnt are gone then. This cannot be taken back.`,
      ),
      h(
        "div",
        { class: "row" },
        h("button", { type: "button", class: "primary dangerous", onclick: go }, "Delete"),
        h("button", { type: "button", onclick: () => dialog.close() }, "Keep it"),
      ),
    );
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
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

/** Buttons of which one is pressed. */
function segments(label, names, chosen, choose) {
  const group = h("div", { class: "segments small", role: "group", "aria-label": label });
  const buttons = Object.entries(names).map(([value, name]) => {
    const button = h("button", { type: "button", "aria-pressed": String(value === chosen) }, name);
    button.addEventListener("click", () => {
      buttons.forEach((one) => one.setAttribute("aria-pressed", String(one === button)));
      choose(value);
    });
    return button;
  });
  group.append(...buttons);
  return group;
}
