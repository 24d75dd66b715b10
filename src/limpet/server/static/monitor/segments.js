// Buttons of which one is pressed.

import { h } from "../common.js";

/** `names` are by value; `choose(value)` is called when one is pressed. `element.press(value)` presses one without a call. */
export function segments(label, names, chosen, choose) {
  const group = h("div", { class: "segments small", role: "group", "aria-label": label });
  const buttons = new Map(
    Object.entries(names).map(([value, name]) => [
      value,
      h("button", { type: "button", onclick: () => (group.press(value), choose(value)) }, name),
    ]),
  );
  group.press = (value) => buttons.forEach((button, one) => button.setAttribute("aria-pressed", String(one === value)));
  group.append(...buttons.values());
  group.press(chosen);
  return group;
}
