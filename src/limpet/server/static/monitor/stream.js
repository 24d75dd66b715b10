// The view of one stream: key figures, live charts, alarms, summary, snippets.

import { api } from "../common/api.js";
import { h, showError } from "../common/dom.js";
import { AlarmList } from "./alarms.js";
import { StreamCharts } from "./charts.js";
import { KeyFigures } from "./key_figures.js";
import { HistoryLoader, SPAN_ROWS } from "./history_loader.js";
import { openDeleteDialog, backLink, notFoundMessage } from "./delete_dialog.js";
import { createSummaryPanel } from "./summary_panel.js";
import { curlLine, exampleBody, codeLine } from "./snippets.js";
import { segments } from "../common/inputs.js";
import { Variables } from "./variables.js";

const DRAW_INTERVAL_MS = 200;
const CONTEXT_ROWS = 40; // shown before and after an alarm
let settingsPromise = null; // of the server

/** Load the settings of the server once; without them the charts do not show the false-alarm rate. */
const loadSettings = () => (settingsPromise ??= api("/settings").catch(() => (settingsPromise = null) ?? {}));

export class StreamView {
  paused = false;
  #span = "500";
  #alarms = [];
  #chosen = null;
  #timer = null;
  #isDeleted = false;

  constructor(key, { streams, closeView }) {
    Object.assign(this, { key, streams, closeView, path: `/streams/${encodeURIComponent(key)}` });
    this.element = h(
      "article",
      { class: "stack whole", "aria-label": `Stream ${key}` },
      h("p", { class: "soft" }, "Loading…"),
    );
    this.loader = new HistoryLoader(key, {
      onChange: () => this.#scheduleDraw(),
      onAlarm: (alarm) => this.list.upsert(alarm),
      onAlarms: () => this.list.load(),
      onReset: () => this.open(),
      onError: showError,
    });
    this.list = new AlarmList({
      stream: key,
      open: false,
      onChange: (alarms) => this.#setAlarms(alarms),
      onHover: (id) => this.#selectAlarm(id),
      onSelect: (alarm) => this.#show(alarm).catch(showError),
    });
    this.onchange = ({ detail }) => detail?.includes(key) && this.#update(streams.summaries.get(key));
    this.onVisibility = () =>
      document.hidden ? this.loader.pause() : this.#isDeleted || !this.charts || this.loader.resume();
    streams.addEventListener("change", this.onchange);
    document.addEventListener("visibilitychange", this.onVisibility);
    this.ageTimer = setInterval(() => this.charts && this.#fill(), 1000);
    this.open();
  }

  async open() {
    try {
      const [stream, settings] = await Promise.all([api(this.path), loadSettings()]);
      this.far = settings.far;
      if (this.closed) return;
      this.#isDeleted = false;
      this.summary = stream;
      const first = !this.charts;
      this.#build(stream);
      if (first && document.activeElement !== document.body) this.title.focus({ preventScroll: true }); // for the keyboard, and so that the list can be reordered
      await Promise.all([this.#loadHistory(), this.list.load()]);
    } catch (error) {
      if (error.status === 404) this.#showNotFound();
      else showError(error);
    }
  }

  #build({ variables, summary, last }) {
    this.title = h("h1", { tabIndex: -1 }, this.key);
    this.facts = new KeyFigures();
    this.variables = new Variables(variables, () => this.charts && this.#onVariables());
    this.pause = h(
      "button",
      { type: "button", class: "small pause", "aria-pressed": "false", onclick: () => this.#pause() },
      "Pause",
    );
    this.spans = segments({
      label: "Points shown",
      choices: { 500: "Last 500", 2000: "Last 2,000", all: "All" },
      value: this.#span,
      onchange: (span) => this.#setSpan(span).catch(showError),
    });
    this.spans.element.classList.add("small");
    this.unzoom = h(
      "button",
      { type: "button", class: "small unzoom", hidden: true, onclick: () => this.charts.zoom(null) },
      "Zoom out",
    );
    const container = h("div", { class: "place" });
    this.chartsCard = h(
      "section",
      { class: "card charts-card", "aria-label": "Charts" },
      this.variables.element,
      container,
    );
    this.element.replaceChildren(
      h(
        "header",
        { class: "row title" },
        backLink(),
        this.title,
        this.facts.state,
        h("div", { class: "end row" }, this.unzoom, this.spans.element, this.pause),
      ),
      this.facts.element,
      this.chartsCard,
      h(
        "section",
        { class: "card" },
        h("div", { class: "row" }, h("h2", {}, "Alarms"), h("div", { class: "end" }, this.list.acknowledgeAllButton)),
        this.list.element,
      ),
      createSummaryPanel(this.path, summary),
      h(
        "section",
        { class: "card stack tight" },
        h("h2", {}, "Post points"),
        codeLine(curlLine(this.key, exampleBody(variables, last)), "a curl command that posts to this stream"),
      ),
      h("div", { class: "row" }, this.#makeDeleteButton()),
    );
    this.charts?.destroy();
    this.charts = new StreamCharts(container, this.key, {
      far: this.far,
      onwindow: (zoomed) => {
        this.unzoom.hidden = !zoomed;
        this.#scheduleDraw(); // fewer rows are drawn in more detail
      },
    });
    this.#fill();
  }

  #makeDeleteButton() {
    const onDeleted = () => {
      this.streams.remove(this.key);
      this.closeView();
    };
    const openDialog = () =>
      openDeleteDialog({ key: this.key, path: this.path, nPoints: this.summary.n_points, onDeleted });
    return h("button", { type: "button", class: "quiet small danger", onclick: openDialog }, "Delete this stream…");
  }

  #fill() {
    this.facts.fill(this.summary, this.variables.shown);
  }

  /** Redraw after a change of the variables. */
  #onVariables() {
    this.#fill();
    this.draw();
  }

  #update(summary) {
    if (this.#isDeleted || !this.charts) return this.#isDeleted && this.open();
    const before = this.summary;
    this.summary = { ...before, ...summary };
    if (summary.n_points < before.n_points || summary.variables.length !== before.variables.length) return this.open(); // deleted and created again
    this.#fill();
    if (summary.open_alarms !== before.open_alarms || summary.n_alarms !== before.n_alarms) this.list.load();
  }

  // Charts

  #scheduleDraw() {
    if (this.paused) return;
    this.#timer ??= setTimeout(() => this.draw(), DRAW_INTERVAL_MS);
  }

  draw() {
    clearTimeout(this.#timer);
    this.#timer = null;
    if (this.closed || !this.charts || this.#isDeleted) return;
    const { shown, names: variables } = this.variables;
    this.charts.draw(this.loader.buffer, { variables, shown, alarms: this.#alarms, chosen: this.#chosen });
  }

  #setAlarms(alarms) {
    this.#alarms = alarms;
    if (!this.charts) return;
    this.variables.showAlarmed(alarms);
    this.#scheduleDraw();
  }

  #selectAlarm(id) {
    this.#chosen = id;
    this.draw();
  }

  /** Show the variables and rows of an alarm, in the shortest span that contains them. */
  async #show(alarm) {
    const from = alarm.onset ?? alarm.row;
    const spans = Object.keys(SPAN_ROWS);
    const span = spans.find((span) => SPAN_ROWS[span] > this.loader.buffer.nextRow - from + CONTEXT_ROWS);
    this.variables.showAlarm(alarm);
    if (spans.indexOf(span) > spans.indexOf(this.#span)) {
      this.spans.set(span);
      await this.#setSpan(span);
    }
    this.draw();
    const margin = Math.max(
      CONTEXT_ROWS,
      3 * (alarm.row - from),
      20 * this.loader.buffer.maxBucketSize(from, alarm.row),
    );
    this.charts?.zoom([from - margin, alarm.row + margin]);
    this.chartsCard.scrollIntoView({ block: "nearest" });
  }

  #pause() {
    this.paused = !this.paused;
    this.pause.textContent = this.paused ? "Resume" : "Pause";
    this.pause.setAttribute("aria-pressed", String(this.paused));
    this.draw(); // also when pausing: no drawing remains scheduled
  }

  /** Load the points of the span; the charts are dimmed meanwhile. */
  async #loadHistory() {
    const { container } = this.charts;
    container.setAttribute("aria-busy", "true");
    try {
      await this.loader.start(this.summary, SPAN_ROWS[this.#span]);
      this.draw();
    } finally {
      container.removeAttribute("aria-busy");
    }
  }

  #setSpan(span) {
    this.#span = span;
    this.charts.zoom(null);
    return this.#loadHistory();
  }

  // Deleted streams

  #showNotFound() {
    this.#isDeleted = true;
    this.loader.pause();
    this.charts?.destroy();
    this.charts = null;
    this.element.replaceChildren(...notFoundMessage(this.key));
  }

  /** Reload the alarms when the connection is back; points resume automatically. */
  onReconnect() {
    if (this.charts) this.list.load();
    else this.open();
  }

  /** Check that the stream still exists, after streams were deleted. */
  async checkExists() {
    if (!this.#isDeleted) await api(this.path).catch((error) => error.status === 404 && this.#showNotFound());
  }

  close() {
    this.closed = true;
    clearTimeout(this.#timer);
    clearInterval(this.ageTimer);
    this.loader.close();
    this.list.close();
    this.charts?.destroy();
    this.streams.removeEventListener("change", this.onchange);
    document.removeEventListener("visibilitychange", this.onVisibility);
    this.element.remove();
  }
}
