// Which variables of a stream are shown: those that open alarms name come first, until somebody chooses others.

import { h } from "../common.js";

const SHOWN = 3; // when there are many

/** The name of a variable; where nobody gave one, numbers stand for names. */
export const called = (variables, j) =>
  variables[j] !== String(j) ? variables[j] : variables.length === 1 ? "value" : `variable ${j}`;

export class Variables {
  shown = []; // places of the variables, in the order of their charts
  #chosen = false; // whether somebody has

  /** `changed()` is called when others are shown. */
  constructor(names, changed) {
    Object.assign(this, { names, changed });
    this.element = h("div", { class: "chips row", hidden: names.length <= SHOWN });
    this.#show(this.#filled([]));
  }

  /** Shows what the open alarms name, the newest first. */
  follow(alarms) {
    if (this.#chosen) return;
    const open = alarms.filter((alarm) => !alarm.acknowledged_at);
    this.#show(this.#filled(open.flatMap((alarm) => this.#places(alarm))));
  }

  /** Shows the variables of one alarm, as somebody asked. */
  choose(alarm) {
    const places = this.#places(alarm);
    if (!places.length || this.names.length <= SHOWN) return;
    this.#chosen = true;
    this.#show(places);
  }

  #places(alarm) {
    return (alarm.variables ?? []).map((name) => this.names.indexOf(name)).filter((j) => j >= 0);
  }

  /** These and the first others, as many as there is room for; all of few stay in their order. */
  #filled(places) {
    const all = this.names.map((_, j) => j);
    return all.length <= SHOWN ? all : [...new Set([...places, ...all])].slice(0, SHOWN);
  }

  #toggle(j) {
    const shown = this.shown.includes(j) ? this.shown.filter((i) => i !== j) : [...this.shown, j];
    this.#chosen = true;
    if (shown.length) this.#show(shown);
  }

  #show(shown) {
    if (String(shown) === String(this.shown)) return;
    this.shown = shown;
    this.#draw();
    this.changed();
  }

  #draw() {
    if (!this.element.children.length)
      this.element.append(
        h("span", { class: "soft small" }, "Variables"),
        ...this.names.map((_, j) =>
          h("button", { type: "button", class: "chip small", onclick: () => this.#toggle(j) }, called(this.names, j)),
        ),
      );
    this.names.forEach((_, j) =>
      this.element.children[j + 1].setAttribute("aria-pressed", String(this.shown.includes(j))),
    );
  }
}
