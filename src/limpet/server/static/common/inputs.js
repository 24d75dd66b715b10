// Inputs of settings: sliders with a number, choices, checkboxes.

import { h } from "./dom.js";
import { formatNumber } from "./format.js";

const SLIDER_STEPS = 1000;
let count = 0;

/** Parse a number as users type it: 3.5, 3,5, 10,000 and 0,005; NaN for other strings. */
export function readNumber(typed) {
  const text = typed.replace(/\s/g, "");
  if (/^(∞|inf(inity)?)$/i.test(text)) return Infinity;
  const grouped = /^-?[1-9]\d{0,2}(,\d{3})+(\.\d*)?$/.test(text);
  const decimal = grouped ? text.replaceAll(",", "") : text.replace(",", "."); // a comma that does not group digits is a decimal comma
  return /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(decimal) ? Number(decimal) : NaN;
}

/** A line below an input for the reason why its value is invalid; `showProblem("")` clears it. */
function makeErrorText(input) {
  const line = h("p", { class: "why small", id: `why-${++count}`, role: "alert", hidden: true });
  const showProblem = (why) => {
    line.textContent = why;
    line.hidden = !why;
    input.classList.toggle("wrong", Boolean(why));
    input.setAttribute("aria-invalid", String(Boolean(why)));
    if (why) input.setAttribute("aria-describedby", line.id);
    else input.removeAttribute("aria-describedby");
  };
  return { line, showProblem };
}

/**
 * A slider from `min` to `max` with a number input. log: logarithmic scale. endless: its right end is ∞.
 * limitMin, limitMax: the limits of typed numbers. integer: integers only.
 * format, parse: conversions between value and text.
 * onchange(value) is called for every move. Returns {element, set(value, {min, max, limitMin, limitMax})}.
 */
export function slider({
  label,
  hint,
  min,
  max,
  limitMin = min,
  limitMax = max,
  log = false,
  endless = false,
  integer = false,
  value,
  format = formatValue,
  parse = (x) => x,
  onchange,
  name,
}) {
  const id = `field-${++count}`;
  const range = h("input", {
    type: "range",
    id,
    min: 0,
    max: SLIDER_STEPS,
    step: 1,
    "aria-describedby": hint ? `${id}-hint` : undefined,
    "data-name": name,
  });
  const number = h("input", {
    type: "text",
    inputmode: "decimal",
    class: "typed numbers",
    "aria-label": `${label}, as a number`,
    "data-name": name ? `${name}-number` : undefined,
  });
  const { line, showProblem } = makeErrorText(number);
  const element = h(
    "div",
    { class: "field" },
    h("div", { class: "field-head" }, h("label", { for: id }, label), number),
    line,
    range,
    hint ? h("p", { class: "hint small soft", id: `${id}-hint` }, hint) : null,
  );
  let limits = { min, max, limitMin, limitMax };
  const toValue = (position) => {
    if (endless && position >= SLIDER_STEPS) return Infinity;
    const share = position / SLIDER_STEPS;
    const exact = log
      ? limits.min * (limits.max / limits.min) ** share
      : limits.min + share * (limits.max - limits.min);
    return integer ? Math.round(exact) : Number(exact.toPrecision(3));
  };
  const toPosition = (x) => {
    if (x === Infinity) return SLIDER_STEPS;
    const share = log
      ? Math.log(x / limits.min) / Math.log(limits.max / limits.min)
      : (x - limits.min) / (limits.max - limits.min);
    return Math.round(SLIDER_STEPS * Math.min(Math.max(share, 0), 1));
  };
  const show = (x) => {
    number.value = format(x);
    showProblem("");
    range.setAttribute("aria-valuetext", format(x));
  };
  const set = (x, further = {}) => {
    limits = { ...limits, ...further };
    range.step = integer && !log ? Math.max(1, SLIDER_STEPS / (limits.max - limits.min)) : 1;
    range.value = toPosition(x);
    if (document.activeElement !== number) show(x);
  };
  range.addEventListener("input", () => {
    const x = toValue(Number(range.value));
    show(x);
    onchange(x);
  });
  /** The reason why a number is invalid, "" if it is valid. */
  const wrong = (x) => {
    if (Number.isNaN(x)) return "Not a number.";
    if (x === Infinity ? endless : x >= limits.limitMin && x <= limits.limitMax) return "";
    const ends = [limits.limitMin, limits.limitMax].sort((a, b) => parse(a) - parse(b)).map(format);
    return `From ${ends[0]} to ${ends[1]}${endless ? ", or ∞" : ""}.`;
  };
  number.addEventListener("change", () => {
    const x = parse(readNumber(number.value));
    const accepted = integer ? Math.round(x) : x;
    showProblem(wrong(accepted));
    if (wrong(accepted)) return;
    range.value = toPosition(accepted);
    show(accepted);
    onchange(accepted);
  });
  set(value);
  return { element, set };
}

const formatValue = (x) => (x === Infinity ? "∞" : formatNumber(x, 4));

/** Buttons, one of which is pressed. choices: {value: title}. */
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

/** A label with buttons, one of which is pressed. */
export function buttonGroup({ label, hint, ...others }) {
  const row = segments({ label, ...others });
  const element = h(
    "div",
    { class: "field" },
    h("div", { class: "field-head" }, h("span", { class: "label" }, label), row.element),
    hint ? h("p", { class: "hint small soft" }, hint) : null,
  );
  return { element, set: row.set };
}

/** An input for an integer, which is read when the user has finished typing. */
export function numberInput({ label, hint, min, max, value, onchange, name }) {
  const id = `field-${++count}`;
  const input = h("input", {
    type: "text",
    inputmode: "numeric",
    id,
    class: "typed numbers",
    "data-name": name,
  });
  const { line, showProblem } = makeErrorText(input);
  input.addEventListener("change", () => {
    const x = readNumber(input.value);
    const fits = Number.isInteger(x) && x >= min && x <= max;
    showProblem(fits ? "" : `An integer from ${min} to ${max.toLocaleString("en-US")}.`);
    if (fits) onchange(x);
  });
  const set = (x) => {
    if (document.activeElement === input) return;
    input.value = x;
    showProblem("");
  };
  set(value);
  return {
    element: h(
      "div",
      { class: "field" },
      h("div", { class: "field-head" }, h("label", { for: id }, label), input),
      line,
      h("p", { class: "hint small soft" }, hint),
    ),
    set,
  };
}

/** A select. choices: {value: title}. */
export function selectInput({ label, choices, value, onchange, name }) {
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

export function checkbox({ label, value, onchange, name }) {
  const input = h("input", { type: "checkbox", checked: value, "data-name": name });
  input.addEventListener("change", () => onchange(input.checked));
  return { element: h("label", { class: "tick" }, input, h("span", {}, label)), set: (x) => (input.checked = x) };
}
