// The fields that settings are made of: sliders with a number that can be typed, choices, folds.

import { few, h } from "../common.js";

const POSITIONS = 1000;
let count = 0;

/** A number as people type it: 3.5, 3,5, 10,000 and 0,005; NaN for what is none. */
export function readNumber(typed) {
  const text = typed.replace(/\s/g, "");
  if (/^(∞|inf(inity)?)$/i.test(text)) return Infinity;
  const grouped = /^-?[1-9]\d{0,2}(,\d{3})+(\.\d*)?$/.test(text);
  const plain = grouped ? text.replaceAll(",", "") : text.replace(",", "."); // one comma that groups nothing is a decimal one
  return /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(plain) ? Number(plain) : NaN;
}

/** A line below an input that says why what was typed is not taken; `complain("")` takes it back. */
function complaint(input) {
  const line = h("p", { class: "why small", id: `why-${++count}`, role: "alert", hidden: true });
  const complain = (why) => {
    line.textContent = why;
    line.hidden = !why;
    input.classList.toggle("wrong", Boolean(why));
    input.setAttribute("aria-invalid", String(Boolean(why)));
    if (why) input.setAttribute("aria-describedby", line.id);
    else input.removeAttribute("aria-describedby");
  };
  return { line, complain };
}

/**
 * A slider from `low` to `high` with its number beside it. log: whether it goes by factors. endless: whether its right end is ∞.
 * least, most: what may be typed, which may be more than the slider shows. whole: whole numbers only.
 * shown, read: how the number is written and read, where it is not the value itself.
 * onchange(value) is called at every move. The answer has `set(value, {low, high, least, most})`.
 */
export function slider({
  label,
  told,
  low,
  high,
  least = low,
  most = high,
  log = false,
  endless = false,
  whole = false,
  value,
  shown = plain,
  read = (x) => x,
  onchange,
  name,
}) {
  const id = `field-${++count}`;
  const range = h("input", {
    type: "range",
    id,
    min: 0,
    max: POSITIONS,
    step: 1,
    "aria-describedby": told ? `${id}-told` : undefined,
    "data-name": name,
  });
  const number = h("input", {
    type: "text",
    inputmode: "decimal",
    class: "typed numbers",
    "aria-label": `${label}, as a number`,
    "data-name": name ? `${name}-number` : undefined,
  });
  const { line, complain } = complaint(number);
  const element = h(
    "div",
    { class: "field" },
    h("div", { class: "field-head" }, h("label", { for: id }, label), number),
    line,
    range,
    told ? h("p", { class: "told small soft", id: `${id}-told` }, told) : null,
  );
  let limits = { low, high, least, most };
  const toValue = (position) => {
    if (endless && position >= POSITIONS) return Infinity;
    const share = position / POSITIONS;
    const exact = log
      ? limits.low * (limits.high / limits.low) ** share
      : limits.low + share * (limits.high - limits.low);
    return whole ? Math.round(exact) : Number(exact.toPrecision(3));
  };
  const toPosition = (x) => {
    if (x === Infinity) return POSITIONS;
    const share = log
      ? Math.log(x / limits.low) / Math.log(limits.high / limits.low)
      : (x - limits.low) / (limits.high - limits.low);
    return Math.round(POSITIONS * Math.min(Math.max(share, 0), 1));
  };
  const show = (x) => {
    number.value = shown(x);
    complain("");
    range.setAttribute("aria-valuetext", shown(x));
  };
  const set = (x, further = {}) => {
    limits = { ...limits, ...further };
    range.step = whole && !log ? Math.max(1, POSITIONS / (limits.high - limits.low)) : 1;
    range.value = toPosition(x);
    if (document.activeElement !== number) show(x);
  };
  range.addEventListener("input", () => {
    const x = toValue(Number(range.value));
    show(x);
    onchange(x);
  });
  /** Why a number is not taken; nothing if it is. */
  const wrong = (x) => {
    if (Number.isNaN(x)) return "This is not a number.";
    if (x === Infinity ? endless : x >= limits.least && x <= limits.most) return "";
    const ends = [limits.least, limits.most].sort((a, b) => read(a) - read(b)).map(shown);
    return `From ${ends[0]} to ${ends[1]}${endless ? ", or ∞" : ""}.`;
  };
  number.addEventListener("change", () => {
    const x = read(readNumber(number.value));
    const taken = whole ? Math.round(x) : x;
    complain(wrong(taken));
    if (wrong(taken)) return;
    range.value = toPosition(taken);
    show(taken);
    onchange(taken);
  });
  set(value);
  return { element, set };
}

const plain = (x) => (x === Infinity ? "∞" : few(x, 4));

/** Buttons of which one is pressed. choices: {value: title}. */
export function segments({ label, choices, value, onchange, name }) {
  const buttons = Object.entries(choices).map(([key, title]) =>
    h(
      "button",
      { type: "button", "data-value": key, "data-name": name, onclick: () => (set(key), onchange(key)) },
      title,
    ),
  );
  const element = h("div", { class: "segments", role: "group", "aria-label": label }, buttons);
  const set = (chosen) =>
    buttons.forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.value === String(chosen))));
  set(value);
  return { element, set };
}

/** A heading and under it buttons of which one is pressed. */
export function buttons({ label, told, ...others }) {
  const row = segments({ label, ...others });
  const element = h(
    "div",
    { class: "field" },
    h("div", { class: "field-head" }, h("span", { class: "label" }, label), row.element),
    told ? h("p", { class: "told small soft" }, told) : null,
  );
  return { element, set: row.set };
}

/** A whole number that is typed: it counts when it has been written, not at every digit. */
export function typed({ label, told, low, high, value, onchange, name }) {
  const id = `field-${++count}`;
  const input = h("input", {
    type: "text",
    inputmode: "numeric",
    id,
    class: "typed numbers",
    "data-name": name,
  });
  const { line, complain } = complaint(input);
  input.addEventListener("change", () => {
    const x = readNumber(input.value);
    const fits = Number.isInteger(x) && x >= low && x <= high;
    complain(fits ? "" : `A whole number from ${low} to ${high.toLocaleString("en-US")}.`);
    if (fits) onchange(x);
  });
  const set = (x) => {
    if (document.activeElement === input) return;
    input.value = x;
    complain("");
  };
  set(value);
  return {
    element: h(
      "div",
      { class: "field" },
      h("div", { class: "field-head" }, h("label", { for: id }, label), input),
      line,
      h("p", { class: "told small soft" }, told),
    ),
    set,
  };
}

/** A choice among many. choices: {value: title}. */
export function choice({ label, choices, value, onchange, name }) {
  const id = `field-${++count}`;
  const select = h(
    "select",
    { id, "data-name": name },
    Object.entries(choices).map(([key, title]) => h("option", { value: key }, title)),
  );
  select.value = value;
  select.addEventListener("change", () => onchange(select.value));
  return {
    element: h("div", { class: "field inline" }, h("label", { for: id }, label), select),
    set: (chosen) => (select.value = chosen),
  };
}

export function tick({ label, value, onchange, name }) {
  const input = h("input", { type: "checkbox", checked: value, "data-name": name });
  input.addEventListener("change", () => onchange(input.checked));
  return { element: h("label", { class: "tick" }, input, h("span", {}, label)), set: (x) => (input.checked = x) };
}
