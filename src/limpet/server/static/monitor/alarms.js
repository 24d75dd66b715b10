// Alarms as cards, of one stream or of all; they can be acknowledged, reopened and noted.

import { api } from "../common/api.js";
import { h, showError } from "../common/dom.js";
import { formatAge, formatInteger } from "../common/format.js";
import { readableTime } from "../charts/axis.js";
import { hasZone, toUnixSeconds } from "../charts/timezone.js";
import { streamHref } from "./stream_row.js";

const PAGE_SIZE = 50;
const MIN_SHOWN_DELAY_S = 5; // between the time of a point and its alarm
const KIND_LABELS = { change: "change", anomaly: "anomaly" };

export class AlarmList {
  alarms = new Map(); // id → alarm
  #cards = new Map();
  #acknowledged = new Set(); // acknowledged on this page: they stay visible, so that they can be reopened
  #total = 0;
  #pending = null;

  /**
   * Of one `stream`, or of all if it is null; `open` excludes acknowledged alarms.
   * `onChange(alarms)` is called when the list changes, `onHover(id | null)` for the alarm under the pointer, `onSelect(alarm)` on a click.
   */
  constructor({ stream = null, open = true, onChange = () => {}, onHover = () => {}, onSelect = null } = {}) {
    Object.assign(this, { stream, open, onChange, onHover, onSelect });
    this.list = h("ol", { class: "alarms" });
    this.emptyText = h("p", { class: "soft", hidden: true }, stream === null ? "No open alarms." : "No alarms yet.");
    this.acknowledgeAllButton = h(
      "button",
      { type: "button", class: "small", hidden: true, onclick: () => this.#acknowledgeAll() },
      stream === null ? "Acknowledge all" : "Acknowledge all of this stream",
    );
    this.moreButton = h(
      "button",
      {
        type: "button",
        class: "quiet small",
        hidden: true,
        onclick: () => this.#fetch(this.#oldest()).catch(showError),
      },
      "Older alarms",
    );
    this.element = h("div", { class: "stack" }, this.list, this.emptyText, this.moreButton);
    this.timer = setInterval(() => this.#cards.forEach((card) => card.updateAge()), 5000);
  }

  close() {
    clearInterval(this.timer);
  }

  /** Fetch the newest alarms; a call during a fetch is repeated after it. */
  async load() {
    if (this.#pending) return (this.#pending.rerun = true);
    const pending = (this.#pending = { rerun: false });
    // A lost connection triggers a new fetch when it is back; the page of a deleted stream reports that.
    await this.#fetch().catch((error) =>
      error instanceof TypeError || error.status === 404 ? null : showError(error),
    );
    this.#pending = null;
    if (pending.rerun) setTimeout(() => this.load(), 500);
  }

  async #fetch(before) {
    const query = new URLSearchParams({ limit: PAGE_SIZE });
    if (this.open) query.set("open", "true");
    if (this.stream !== null) query.set("stream", this.stream);
    if (before !== undefined) query.set("before", before);
    const page = await api(`/alarms?${query}`);
    if (before === undefined) this.#removeAcknowledged(page.alarms);
    this.#total = Math.max(page.total, this.alarms.size);
    for (const alarm of page.alarms) this.alarms.set(alarm.id, alarm);
    if (before === undefined) this.#total = page.total;
    this.draw();
  }

  /** Remove alarms that were acknowledged elsewhere, or whose stream was deleted. */
  #removeAcknowledged(alarms) {
    const oldest = alarms.length < PAGE_SIZE ? -Infinity : alarms[alarms.length - 1].id;
    const ids = new Set(alarms.map((alarm) => alarm.id));
    for (const id of this.alarms.keys())
      if (id >= oldest && !ids.has(id) && !this.#acknowledged.has(id)) this.alarms.delete(id);
  }

  #oldest() {
    return Math.min(...this.alarms.keys());
  }

  /** Add or update an alarm. */
  upsert(alarm) {
    if (!this.alarms.has(alarm.id)) this.#total++;
    this.alarms.set(alarm.id, alarm);
    this.draw();
  }

  draw() {
    const sorted = [...this.alarms.values()].sort((a, b) => b.id - a.id);
    for (const [id, card] of this.#cards) {
      if (this.alarms.has(id)) continue;
      card.element.remove();
      this.#cards.delete(id);
    }
    sorted.forEach((alarm, i) => {
      let card = this.#cards.get(alarm.id);
      if (!card) this.#cards.set(alarm.id, (card = new Card(alarm, this)));
      else card.fill(alarm);
      if (this.list.children[i] !== card.element) this.list.insertBefore(card.element, this.list.children[i] ?? null);
    });
    const open = sorted.filter((alarm) => !alarm.acknowledged_at).length;
    this.emptyText.hidden = sorted.length > 0;
    this.acknowledgeAllButton.hidden = open < 2;
    const hidden = this.#total - (this.open ? open : sorted.length);
    this.moreButton.hidden = hidden <= 0;
    this.moreButton.textContent = `Older alarms (${formatInteger(hidden)})`;
    this.onChange(sorted);
  }

  async change(alarm, patch) {
    try {
      if (patch.acknowledged) this.#acknowledged.add(alarm.id);
      this.upsert(await api(`/alarms/${alarm.id}`, { method: "PATCH", body: patch }));
    } catch (error) {
      this.#acknowledged.delete(alarm.id);
      showError(error);
    }
  }

  async #acknowledgeAll() {
    for (const alarm of this.alarms.values()) if (!alarm.acknowledged_at) this.#acknowledged.add(alarm.id);
    try {
      await api("/alarms/acknowledge", { method: "POST", body: this.stream === null ? {} : { stream: this.stream } });
      const now = Date.now() / 1000;
      for (const [id, alarm] of this.alarms)
        if (!alarm.acknowledged_at) this.alarms.set(id, { ...alarm, acknowledged_at: now });
      this.draw();
      this.load();
    } catch (error) {
      showError(error);
    }
  }
}

/** The time of the point, if it has one, and its row. */
export function formatPosition(alarm) {
  const time = readableTime(alarm.time).replace(/(:\d\d)\.\d+$/, "$1"); // the row is exact
  return `${time ? `${time}${hasZone(alarm.time) ? " UTC" : ""} · ` : ""}row ${formatInteger(alarm.row)}`;
}

/** The age of the alarm; "raised" if the time of the point is different. */
function formatDelay(alarm) {
  const point = toUnixSeconds(alarm.time);
  const isDelayed = point === null || Math.abs(alarm.raised_at - point) > MIN_SHOWN_DELAY_S;
  return `${isDelayed ? "raised " : ""}${formatAge(alarm.raised_at)}`;
}

class Card {
  #editing = false;

  constructor(alarm, list) {
    this.list = list;
    this.kind = h("span", { class: "badge" });
    this.when = h("span", { class: "soft small numbers when" });
    this.button = h("button", {
      type: "button",
      class: "small",
      onclick: () => list.change(this.alarm, { acknowledged: !this.alarm.acknowledged_at }),
    });
    this.message = list.onSelect
      ? h("button", { type: "button", class: "message linklike", title: "Show in the charts" })
      : h("p", { class: "message" });
    this.noted = h("div", { class: "noted" });
    this.note = h("button", { type: "button", class: "quiet small", onclick: () => this.#editNote() });
    const name = list.stream === null ? h("a", { class: "of", href: streamHref(alarm.key) }, alarm.key) : null;
    this.element = h(
      "li",
      { class: "alarm" },
      h("div", { class: "head" }, this.kind, name, this.when),
      this.message,
      this.noted,
      h("div", { class: "acts" }, this.note, this.button),
    );
    for (const [name, id] of [
      ["pointerenter", alarm.id],
      ["focusin", alarm.id],
      ["pointerleave", null],
      ["focusout", null],
    ]) {
      this.element.addEventListener(name, () => list.onHover(id));
    }
    if (list.onSelect) this.element.addEventListener("click", (event) => this.#onClick(event));
    this.fill(alarm);
  }

  /** Select the alarm on a click, except on its controls and for a selection of text. */
  #onClick({ target }) {
    const other = target.closest("a, button, textarea");
    if ((!other || other === this.message) && getSelection().isCollapsed) this.list.onSelect(this.alarm);
  }

  fill(alarm) {
    if (this.alarm === alarm) return;
    this.alarm = alarm;
    this.element.dataset.id = alarm.id;
    this.element.classList.toggle("done", Boolean(alarm.acknowledged_at));
    this.kind.className = `badge ${alarm.acknowledged_at ? "plain" : alarm.kind}`;
    this.kind.textContent = KIND_LABELS[alarm.kind] ?? alarm.kind;
    this.message.textContent = alarm.message;
    this.button.textContent = alarm.acknowledged_at ? "Reopen" : "Acknowledge";
    this.button.classList.toggle("quiet", Boolean(alarm.acknowledged_at));
    this.updateAge();
    if (!this.#editing) this.#showNote();
  }

  updateAge() {
    const done = this.alarm.acknowledged_at ? ` · acknowledged ${formatAge(this.alarm.acknowledged_at)}` : "";
    this.when.textContent = `${formatPosition(this.alarm)} · ${formatDelay(this.alarm)}${done}`;
    this.when.title = `Raised at ${new Date(this.alarm.raised_at * 1000).toLocaleString()}, the time of this browser`;
  }

  #showNote() {
    this.#editing = false;
    this.note.hidden = false;
    this.note.textContent = this.alarm.note ? "Edit note" : "Add note";
    this.noted.textContent = this.alarm.note ?? "";
    this.noted.hidden = !this.alarm.note;
  }

  #editNote() {
    this.#editing = true;
    this.note.hidden = true;
    this.noted.hidden = false;
    const text = h("textarea", { rows: 2, "aria-label": "Note", maxLength: 2000 });
    text.value = this.alarm.note ?? "";
    const close = () => {
      this.#showNote();
      this.note.focus();
    };
    const save = async () => {
      await this.list.change(this.alarm, { note: text.value.trim() });
      close();
    };
    text.addEventListener("keydown", (event) => {
      if (event.key === "Escape") close();
      else if (event.key === "Enter" && !event.shiftKey) save();
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    this.noted.replaceChildren(
      text,
      h(
        "span",
        { class: "row" },
        h("button", { type: "button", class: "small primary", onclick: save }, "Save"),
        h("button", { type: "button", class: "quiet small", onclick: close }, "Cancel"),
      ),
    );
    text.focus();
  }
}
