// The variables of a stream that are shown: those of open alarms first, until the user selects others.

import { h } from "../common/dom.js";

const MAX_SHOWN = 3; // of many variables

/** The name of a variable; the server names those without a name by their index. */
export const variableLabel = (variables, j) =>
  variables[j] !== String(j) ? variables[j] : variables.length === 1 ? "value" : `variable ${j}`;

export class Variables {
  shown = []; // indices of the variables, in the order of their charts
  #chosen = false; // by the user

  /** `onChange()` is called when other variables are shown. */
  constructor(names, onChange) {
    Object.assign(this, { names, onChange });
    this.element = h("div", { class: "chips row", hidden: names.length <= MAX_SHOWN });
    this.#show(this.#completed([]));
  }

  /** Show the variables of open alarms, the newest first. */
  showAlarmed(alarms) {
    if (this.#chosen) return;
    const open = alarms.filter((alarm) => !alarm.acknowledged_at);
    this.#show(this.#completed(open.flatMap((alarm) => this.#indices(alarm))));
  }

  /** Show the variables of one alarm, which the user has selected. */
  showAlarm(alarm) {
    const indices = this.#indices(alarm);
    if (!indices.length || this.names.length <= MAX_SHOWN) return;
    this.#chosen = true;
    this.#show(indices);
  }

  #indices(alarm) {
    return (alarm.variables ?? []).map((name) => this.names.indexOf(name)).filter((j) => j >= 0);
  }

  /** These and the first others, up to `MAX_SHOWN`; if all are shown, they keep their order. */
  #completed(indices) {
    const all = this.names.map((_, j) => j);
    return all.length <= MAX_SHOWN ? all : [...new Set([...indices, ...all])].slice(0, MAX_SHOWN);
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
    this.onChange();
  }

  #draw() {
    if (!this.element.children.length)
      this.element.append(
        h("span", { class: "soft small" }, "Variables"),
        ...this.names.map((_, j) =>
          h(
            "button",
            { type: "button", class: "chip small", onclick: () => this.#toggle(j) },
            variableLabel(this.names, j),
          ),
        ),
      );
    this.names.forEach((_, j) =>
      this.element.children[j + 1].setAttribute("aria-pressed", String(this.shown.includes(j))),
    );
  }
}
