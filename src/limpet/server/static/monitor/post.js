// How to send points: lines to copy, made for this server.

import { api, copy, h } from "../common.js";

let needed = null;

/** Whether the server asks for a token. */
export const tokenNeeded = () =>
  (needed ??= api("/session").then(
    (session) => session.needed,
    () => false,
  ));

/** The address of a stream's points, safe between single quotes of a shell. */
export const pointsAt = (key) => `${location.origin}/streams/${encodeURIComponent(key).replace(/'/g, "%27")}/points`;

export async function curlLine(key, body = "21.5") {
  const token = (await tokenNeeded()) ? ' -H "Authorization: Bearer $LIMPET_TOKEN"' : "";
  return `curl -X POST '${pointsAt(key)}'${token} -H 'Content-Type: application/json' -d '${body}'`;
}

export async function pythonLine(key, body = "21.5") {
  const token = (await tokenNeeded()) ? ', headers={"Authorization": f"Bearer {token}"}' : "";
  return `httpx.post(${JSON.stringify(pointsAt(key))}, json=${body}${token})`;
}

/** A line with a button that copies it; `text` may be a promise. */
export function line(text, label) {
  const code = h("code", {});
  const pre = h("pre", { tabIndex: 0, "aria-label": label }, code);
  Promise.resolve(text).then((known) => (code.textContent = known));
  return h(
    "div",
    { class: "line" },
    pre,
    h(
      "button",
      { type: "button", class: "small", "aria-label": `Copy: ${label}`, onclick: () => copy(code.textContent) },
      "Copy",
    ),
  );
}

/** A body that fits the stream: one value, or one for each variable, by name where they have names. */
export function example(variables, last) {
  const known = (i) => last?.[i] ?? 21.5;
  if (variables.length < 2) return String(known(0));
  if (variables.every((name, i) => name === String(i)))
    return JSON.stringify({ values: variables.map((_, i) => known(i)) });
  return JSON.stringify({ values: Object.fromEntries(variables.map((name, i) => [name, known(i)])) }).replace(
    /'/g,
    "\\u0027",
  );
}

/** What the page says before there is a stream. */
export function emptyPage() {
  return h(
    "section",
    { class: "card first-steps" },
    h("h1", {}, "No streams yet"),
    h(
      "p",
      { class: "soft" },
      "Send a number and its stream appears here. The first points teach it what is usual; then it tells outliers from changes and raises alarms. There is nothing to set.",
    ),
    h("h2", {}, "From a shell"),
    line(curlLine("boiler"), "a curl command that posts a point"),
    h("h2", {}, "From Python"),
    line(
      pythonLine("boiler").then((text) => `import httpx\n${text}`),
      "Python that posts a point",
    ),
    h("h2", {}, "Or just look"),
    line("limpet serve --demo", "the command that starts a demo"),
    h(
      "p",
      { class: "soft small" },
      "Many points at once, points with times and several variables: see the ",
      h("a", { href: "/api" }, "API"),
      ". To look at a file instead, open the ",
      h("a", { href: "/explorer" }, "explorer"),
      ".",
    ),
  );
}
