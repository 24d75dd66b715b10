// The list of streams. Only the rows in view are in the document, so that thousands of streams stay light.
// Values change at once; the order changes calmly: never under the pointer or the keyboard, at most once a second.

import { h } from "../common.js";
import { ageRow, fillRow, makeRow } from "./row.js";

export const ROW = 60; // px, as in monitor.css
const SPARE = 5; // rows kept above and below what is seen
const SORTS = { alarming: "Alarming first", recent: "Most recent", name: "By name" };

export class StreamList {
  #streams;
  #rows = new Map(); // place → row
  #active = 0; // the place that the keyboard is at
  #current = null; // the key that is open
  #under = false; // whether the pointer is over the list
  #asked = 0;

  constructor(streams) {
    this.#streams = streams;
    this.search = h("input", {
      type: "search",
      id: "search",
      placeholder: "Search streams",
      "aria-label": "Search streams",
      autocomplete: "off",
      spellcheck: "false",
    });
    this.sort = h(
      "select",
      { id: "sort", "aria-label": "Order" },
      Object.entries(SORTS).map(([value, name]) => h("option", { value }, name)),
    );
    this.moved = h(
      "button",
      { class: "moved small", type: "button", hidden: true, onclick: () => this.update() },
      "The order has changed: update",
    );
    this.none = h("p", { class: "empty" }, "Loading…");
    this.space = h("div", { class: "space", role: "list", "aria-label": "Streams" });
    this.scroller = h("div", { class: "scroller", tabindex: "-1" }, this.space, this.none);
    this.element = h(
      "div",
      { class: "list" },
      h("div", { class: "choose" }, this.search, this.sort),
      this.moved,
      this.scroller,
    );
    this.#listen();
  }

  #listen() {
    let typing;
    this.search.addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(() => this.#choose({ search: this.search.value.trim() }), 150);
    });
    this.sort.addEventListener("change", () => this.#choose({ sort: this.sort.value }));
    this.search.addEventListener("keydown", (event) => this.#fromSearch(event));
    this.scroller.addEventListener("keydown", (event) => this.#keys(event));
    this.scroller.addEventListener("scroll", () => this.#soon(), { passive: true });
    this.scroller.addEventListener("focusin", (event) => this.#follow(event.target));
    // A finger leaves no pointer behind, so only a mouse holds the order.
    this.scroller.addEventListener("pointerenter", (event) => (this.#under = event.pointerType === "mouse"));
    this.scroller.addEventListener("pointerleave", () => (this.#under = false));
    this.#streams.addEventListener("change", () => this.#soon());
    new ResizeObserver(() => this.draw(true)).observe(this.scroller);
    document.addEventListener("themechange", () => this.draw(true));
    setInterval(() => this.#calm(), 250);
    setInterval(() => this.#rows.forEach(ageRow), 1000);
  }

  #choose(query) {
    this.scroller.scrollTop = 0;
    this.#active = 0;
    this.#streams.choose(query);
  }

  /** Asks for the order of now, if nobody is reading or moving in the list. */
  #calm() {
    const held = this.#under || this.scroller.contains(document.activeElement);
    const early = performance.now() - this.#asked < 1000;
    this.moved.hidden = !(this.#streams.moved && held) || this.#streams.query.sort === "recent";
    if (this.#streams.moved && !held && !early && this.scroller.clientHeight) this.update();
  }

  update() {
    this.#asked = performance.now();
    this.moved.hidden = true;
    return this.#streams.refresh();
  }

  #frame = null;
  #soon() {
    this.#frame ??= requestAnimationFrame(() => this.draw());
  }

  /** Draws the rows in view; `again` also those that have not changed. */
  draw(again = false) {
    cancelAnimationFrame(this.#frame);
    this.#frame = null;
    const { order, total, known, loaded } = this.#streams;
    this.space.style.height = `${total * ROW}px`;
    this.none.hidden = total > 0;
    if (loaded) this.none.textContent = "No stream has this in its name.";
    const top = this.scroller.scrollTop;
    const first = Math.max(0, Math.floor(top / ROW) - SPARE);
    const last = Math.min(total - 1, Math.ceil((top + this.scroller.clientHeight) / ROW) + SPARE);
    for (const [place, row] of this.#rows) if (place < first || place > last) this.#drop(place, row);
    for (let place = first; place <= last; place++) {
      const row = this.#rows.get(place) ?? this.#add(place);
      if (again) row.summary = null;
      fillRow(row, known.get(order[place]) ?? null);
      this.#mark(row, place);
    }
    if (total && this.scroller.clientHeight) this.#streams.need(first, last);
  }

  #add(place) {
    const row = makeRow();
    row.slot.style.transform = `translateY(${place * ROW}px)`;
    row.slot.dataset.place = place;
    row.slot.setAttribute("aria-posinset", place + 1);
    this.#rows.set(place, row);
    this.space.append(row.slot);
    return row;
  }

  #drop(place, row) {
    row.slot.remove();
    this.#rows.delete(place);
  }

  #mark(row, place) {
    row.slot.setAttribute("aria-setsize", this.#streams.total);
    row.anchor.tabIndex = place === this.#active ? 0 : -1;
    if (row.summary && row.summary.key === this.#current) row.anchor.setAttribute("aria-current", "true");
    else row.anchor.removeAttribute("aria-current");
  }

  /** Marks the stream that is open. */
  select(key) {
    this.#current = key;
    this.#rows.forEach((row, place) => this.#mark(row, place));
  }

  // The keyboard

  #follow(target) {
    const slot = target.closest?.(".slot");
    if (slot) this.#active = Number(slot.dataset.place);
  }

  #fromSearch(event) {
    if (event.key === "ArrowDown") this.focus(0);
    else if (event.key === "Enter") this.#rows.get(0)?.anchor.click();
    else if (event.key === "Escape" && this.search.value) {
      this.search.value = "";
      this.#choose({ search: "" });
    } else if (event.key === "Escape") this.search.blur();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #keys(event) {
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / ROW) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (!(event.key in steps) || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    if (event.key === "ArrowUp" && this.#active === 0) this.search.focus();
    else this.focus(this.#active + steps[event.key]);
  }

  /** Puts the keyboard on a stream, wherever it stands by now. */
  focusOn(key) {
    const place = this.#streams.order.indexOf(key);
    this.focus(place < 0 ? this.#active : place);
  }

  /** Puts the keyboard on a place, scrolled into view. */
  focus(place = this.#active) {
    this.#active = Math.max(0, Math.min(this.#streams.total - 1, place));
    const { scrollTop, clientHeight } = this.scroller;
    if (this.#active * ROW < scrollTop) this.scroller.scrollTop = this.#active * ROW;
    else if ((this.#active + 1) * ROW > scrollTop + clientHeight)
      this.scroller.scrollTop = (this.#active + 1) * ROW - clientHeight;
    this.draw();
    this.#rows.get(this.#active)?.anchor.focus({ preventScroll: true });
  }

  /** How many rows are in the document, for tests. */
  get drawn() {
    return this.#rows.size;
  }
}
