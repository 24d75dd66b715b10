// Alarms as cards: of one stream, or the open ones of all. They can be acknowledged, opened again and noted.

import { ago, api, h, tell, whole } from "../common.js";
import { readableTime } from "../charts/axis.js";
import { hasZone, secondsOf } from "../charts/zone.js";
import { link } from "./row.js";

const PAGE = 50;
const APART = 5; // seconds between a point's time and its alarm that go without saying
const WORDS = { change: "change", anomaly: "anomaly" };

export class AlarmList {
  alarms = new Map(); // id → alarm
  #cards = new Map();
  #done = new Set(); // acknowledged here: they stay in view until one leaves, so that it can be taken back
  #total = 0;
  #asking = null;

  /**
   * Of one `stream`, or of all when it is null; `open` leaves out what was acknowledged.
   * `changed(alarms)` is called when the list is another, `choose(id | null)` when one is pointed at, `show(alarm)` when one is clicked.
   */
  constructor({ stream = null, open = true, changed = () => {}, choose = () => {}, show = null } = {}) {
    Object.assign(this, { stream, open, changed, choose, show });
    this.list = h("ol", { class: "alarms" });
    this.none = h(
      "p",
      { class: "soft", hidden: true },
      stream === null ? "No open alarms. All is quiet." : "No alarms so far.",
    );
    this.all = h(
      "button",
      { type: "button", class: "small", hidden: true, onclick: () => this.#acknowledgeAll() },
      stream === null ? "Acknowledge all" : "Acknowledge all of this stream",
    );
    this.more = h(
      "button",
      { type: "button", class: "quiet small", hidden: true, onclick: () => this.#ask(this.#oldest()).catch(tell) },
      "Older alarms",
    );
    this.element = h("div", { class: "stack" }, this.list, this.none, this.more);
    this.timer = setInterval(() => this.#cards.forEach((card) => card.age()), 5000);
  }

  close() {
    clearInterval(this.timer);
  }

  /** Asks for the newest; a second call while the first is under way follows it. */
  async load() {
    if (this.#asking) return (this.#asking.again = true);
    const asking = (this.#asking = { again: false });
    // Without a connection it is asked again when that is back; a stream that has been deleted is told of by its own page.
    await this.#ask().catch((error) => (error instanceof TypeError || error.status === 404 ? null : tell(error)));
    this.#asking = null;
    if (asking.again) setTimeout(() => this.load(), 500);
  }

  async #ask(before) {
    const query = new URLSearchParams({ limit: PAGE });
    if (this.open) query.set("open", "true");
    if (this.stream !== null) query.set("stream", this.stream);
    if (before !== undefined) query.set("before", before);
    const answer = await api(`/alarms?${query}`);
    if (before === undefined) this.#forget(answer.alarms);
    this.#total = Math.max(answer.total, this.alarms.size);
    for (const alarm of answer.alarms) this.alarms.set(alarm.id, alarm);
    if (before === undefined) this.#total = answer.total;
    this.draw();
  }

  /** What is no longer open was acknowledged elsewhere, or its stream is gone. */
  #forget(answered) {
    const oldest = answered.length < PAGE ? -Infinity : answered[answered.length - 1].id;
    const there = new Set(answered.map((alarm) => alarm.id));
    for (const id of this.alarms.keys())
      if (id >= oldest && !there.has(id) && !this.#done.has(id)) this.alarms.delete(id);
  }

  #oldest() {
    return Math.min(...this.alarms.keys());
  }

  /** Takes in an alarm that is new or was changed. */
  put(alarm) {
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
    this.none.hidden = sorted.length > 0;
    this.all.hidden = open < 2;
    const hidden = this.#total - (this.open ? open : sorted.length);
    this.more.hidden = hidden <= 0;
    this.more.textContent = `Older alarms (${whole(hidden)})`;
    this.changed(sorted);
  }

  async change(alarm, what) {
    try {
      if (what.acknowledged) this.#done.add(alarm.id);
      this.put(await api(`/alarms/${alarm.id}`, { method: "PATCH", body: what }));
    } catch (error) {
      this.#done.delete(alarm.id);
      tell(error);
    }
  }

  async #acknowledgeAll() {
    for (const alarm of this.alarms.values()) if (!alarm.acknowledged_at) this.#done.add(alarm.id);
    try {
      await api("/alarms/acknowledge", { method: "POST", body: this.stream === null ? {} : { stream: this.stream } });
      const now = Date.now() / 1000;
      for (const [id, alarm] of this.alarms)
        if (!alarm.acknowledged_at) this.alarms.set(id, { ...alarm, acknowledged_at: now });
      this.draw();
      this.load();
    } catch (error) {
      tell(error);
    }
  }
}

/** The time of the point where it has one, and its row. */
export function where(alarm) {
  const time = readableTime(alarm.time).replace(/(:\d\d)\.\d+$/, "$1"); // the row says the rest
  return `${time ? `${time}${hasZone(alarm.time) ? " UTC" : ""} · ` : ""}row ${whole(alarm.row)}`;
}

/** How long ago it was; where it was raised at quite another time than the point has, that is said. */
function since(alarm) {
  const point = secondsOf(alarm.time);
  const apart = point === null || Math.abs(alarm.raised_at - point) > APART;
  return `${apart ? "raised " : ""}${ago(alarm.raised_at)}`;
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
    this.message = list.show
      ? h("button", { type: "button", class: "message linklike", title: "Show it in the charts" })
      : h("p", { class: "message" });
    this.noted = h("div", { class: "noted" });
    this.note = h("button", { type: "button", class: "quiet small", onclick: () => this.#editNote() });
    const name = list.stream === null ? h("a", { class: "of", href: link(alarm.stream) }, alarm.stream) : null;
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
      this.element.addEventListener(name, () => list.choose(id));
    }
    if (list.show) this.element.addEventListener("click", (event) => this.#onClick(event));
    this.fill(alarm);
  }

  /** A click anywhere but on its other controls, and not one that selects its text. */
  #onClick({ target }) {
    const other = target.closest("a, button, textarea");
    if ((!other || other === this.message) && getSelection().isCollapsed) this.list.show(this.alarm);
  }

  fill(alarm) {
    if (this.alarm === alarm) return;
    this.alarm = alarm;
    this.element.dataset.id = alarm.id;
    this.element.classList.toggle("done", Boolean(alarm.acknowledged_at));
    this.kind.className = `badge ${alarm.acknowledged_at ? "plain" : alarm.kind}`;
    this.kind.textContent = WORDS[alarm.kind] ?? alarm.kind;
    this.message.textContent = alarm.message;
    this.button.textContent = alarm.acknowledged_at ? "Reopen" : "Acknowledge";
    this.button.classList.toggle("quiet", Boolean(alarm.acknowledged_at));
    this.age();
    if (!this.#editing) this.#showNote();
  }

  age() {
    const done = this.alarm.acknowledged_at ? ` · acknowledged ${ago(this.alarm.acknowledged_at)}` : "";
    this.when.textContent = `${where(this.alarm)} · ${since(this.alarm)}${done}`;
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
