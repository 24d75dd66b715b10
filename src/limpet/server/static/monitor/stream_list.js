// The list of streams. Only visible rows are in the document, so that it is fast with thousands of streams.
// Values change immediately; the order changes at most once per second, and never under the pointer or the keyboard.

import { h } from "../common/dom.js";
import { updateAge, fillRow, makeRow } from "./stream_row.js";

export const ROW_HEIGHT_PX = 60; // as in monitor.css
const OVERSCAN_ROWS = 5; // above and below the visible ones
const SORT_LABELS = { alarming: "Alarming first", recent: "Most recent", name: "By name" };

export class StreamList {
  #streams;
  #rows = new Map(); // index → row
  #focusedIndex = 0;
  #openKey = null;
  #isHovered = false;
  #refreshedAt = 0;

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
      Object.entries(SORT_LABELS).map(([value, name]) => h("option", { value }, name)),
    );
    this.reorderButton = h(
      "button",
      { class: "moved small", type: "button", hidden: true, onclick: () => this.update() },
      "The order has changed. Update",
    );
    this.emptyText = h("p", { class: "empty" }, "Loading…");
    this.space = h("div", { class: "space", role: "list", "aria-label": "Streams" });
    this.scroller = h("div", { class: "scroller", tabindex: "-1" }, this.space, this.emptyText);
    this.element = h(
      "div",
      { class: "list" },
      h("div", { class: "choose" }, this.search, this.sort),
      this.reorderButton,
      this.scroller,
    );
    this.#listen();
  }

  #listen() {
    let typing;
    this.search.addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(() => this.#setQuery({ search: this.search.value.trim() }), 150);
    });
    this.sort.addEventListener("change", () => this.#setQuery({ sort: this.sort.value }));
    this.search.addEventListener("keydown", (event) => this.#onSearchKey(event));
    this.scroller.addEventListener("keydown", (event) => this.#onKey(event));
    this.scroller.addEventListener("scroll", () => this.#scheduleDraw(), { passive: true });
    this.scroller.addEventListener("focusin", (event) => this.#onFocus(event.target));
    // Only a mouse stays over the list; a finger does not.
    this.scroller.addEventListener("pointerenter", (event) => (this.#isHovered = event.pointerType === "mouse"));
    this.scroller.addEventListener("pointerleave", () => (this.#isHovered = false));
    this.#streams.addEventListener("change", () => this.#scheduleDraw());
    new ResizeObserver(() => this.draw(true)).observe(this.scroller);
    document.addEventListener("themechange", () => this.draw(true));
    setInterval(() => this.#maybeReorder(), 250);
    setInterval(() => this.#rows.forEach(updateAge), 1000);
  }

  #setQuery(query) {
    this.scroller.scrollTop = 0;
    this.#focusedIndex = 0;
    this.#streams.choose(query);
  }

  /** Update the order, unless the list is in use. */
  #maybeReorder() {
    const isBusy = this.#isHovered || this.scroller.contains(document.activeElement);
    const isTooSoon = performance.now() - this.#refreshedAt < 1000;
    this.reorderButton.hidden = !(this.#streams.orderChanged && isBusy) || this.#streams.query.sort === "recent";
    if (this.#streams.orderChanged && !isBusy && !isTooSoon && this.scroller.clientHeight) this.update();
  }

  update() {
    this.#refreshedAt = performance.now();
    this.reorderButton.hidden = true;
    return this.#streams.refresh();
  }

  #frame = null;
  #scheduleDraw() {
    this.#frame ??= requestAnimationFrame(() => this.draw());
  }

  /** Draw the visible rows; `force` also those that have not changed. */
  draw(force = false) {
    cancelAnimationFrame(this.#frame);
    this.#frame = null;
    const { order, total, summaries, loaded } = this.#streams;
    this.space.style.height = `${total * ROW_HEIGHT_PX}px`;
    this.emptyText.hidden = total > 0;
    if (loaded) this.emptyText.textContent = "No stream matches.";
    const top = this.scroller.scrollTop;
    const first = Math.max(0, Math.floor(top / ROW_HEIGHT_PX) - OVERSCAN_ROWS);
    const last = Math.min(total - 1, Math.ceil((top + this.scroller.clientHeight) / ROW_HEIGHT_PX) + OVERSCAN_ROWS);
    for (const [index, row] of this.#rows) if (index < first || index > last) this.#drop(index, row);
    for (let index = first; index <= last; index++) {
      const row = this.#rows.get(index) ?? this.#add(index);
      if (force) row.summary = null;
      fillRow(row, summaries.get(order[index]) ?? null);
      this.#mark(row, index);
    }
    if (total && this.scroller.clientHeight) this.#streams.ensureLoaded(first, last);
  }

  #add(index) {
    const row = makeRow();
    row.slot.style.transform = `translateY(${index * ROW_HEIGHT_PX}px)`;
    row.slot.dataset.index = index;
    row.slot.setAttribute("aria-posinset", index + 1);
    this.#rows.set(index, row);
    this.space.append(row.slot);
    return row;
  }

  #drop(index, row) {
    row.slot.remove();
    this.#rows.delete(index);
  }

  #mark(row, index) {
    row.slot.setAttribute("aria-setsize", this.#streams.total);
    row.anchor.tabIndex = index === this.#focusedIndex ? 0 : -1;
    if (row.summary && row.summary.key === this.#openKey) row.anchor.setAttribute("aria-current", "true");
    else row.anchor.removeAttribute("aria-current");
  }

  /** Mark the open stream. */
  select(key) {
    this.#openKey = key;
    this.#rows.forEach((row, index) => this.#mark(row, index));
  }

  // The keyboard

  #onFocus(target) {
    const slot = target.closest?.(".slot");
    if (slot) this.#focusedIndex = Number(slot.dataset.index);
  }

  #onSearchKey(event) {
    if (event.key === "ArrowDown") this.focus(0);
    else if (event.key === "Enter") this.#rows.get(0)?.anchor.click();
    else if (event.key === "Escape" && this.search.value) {
      this.search.value = "";
      this.#setQuery({ search: "" });
    } else if (event.key === "Escape") this.search.blur();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #onKey(event) {
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / ROW_HEIGHT_PX) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (!(event.key in steps) || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    if (event.key === "ArrowUp" && this.#focusedIndex === 0) this.search.focus();
    else this.focus(this.#focusedIndex + steps[event.key]);
  }

  /** Focus a stream at its present index. */
  focusOn(key) {
    const index = this.#streams.order.indexOf(key);
    this.focus(index < 0 ? this.#focusedIndex : index);
  }

  /** Focus an index and scroll it into view. */
  focus(index = this.#focusedIndex) {
    this.#focusedIndex = Math.max(0, Math.min(this.#streams.total - 1, index));
    const { scrollTop, clientHeight } = this.scroller;
    if (this.#focusedIndex * ROW_HEIGHT_PX < scrollTop) this.scroller.scrollTop = this.#focusedIndex * ROW_HEIGHT_PX;
    else if ((this.#focusedIndex + 1) * ROW_HEIGHT_PX > scrollTop + clientHeight)
      this.scroller.scrollTop = (this.#focusedIndex + 1) * ROW_HEIGHT_PX - clientHeight;
    this.draw();
    this.#rows.get(this.#focusedIndex)?.anchor.focus({ preventScroll: true });
  }

  /** The number of rows in the document, for tests. */
  get drawn() {
    return this.#rows.size;
  }
}
