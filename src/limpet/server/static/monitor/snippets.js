// Code snippets that post points to this server.

import { api } from "../common/api.js";
import { copyToClipboard, h } from "../common/dom.js";

let tokenRequired = null;

/** Whether the server requires a token. */
export const isTokenRequired = () =>
  (tokenRequired ??= api("/session").then(
    (session) => session.token_required,
    () => false,
  ));

/** The URL of a stream's points, safe between single quotes of a shell. */
export const pointsUrl = (key) => `${location.origin}/streams/${encodeURIComponent(key).replace(/'/g, "%27")}/points`;

export async function curlLine(key, body = "21.5") {
  const token = (await isTokenRequired()) ? ' -H "Authorization: Bearer $LIMPET_TOKEN"' : "";
  return `curl -X POST '${pointsUrl(key)}'${token} -H 'Content-Type: application/json' -d '${body}'`;
}

export async function pythonLine(key, body = "21.5") {
  const token = (await isTokenRequired()) ? ', headers={"Authorization": f"Bearer {token}"}' : "";
  return `httpx.post(${JSON.stringify(pointsUrl(key))}, json=${body}${token})`;
}

/** A line of code with a button that copies it; `text` may be a promise. */
export function codeLine(text, label) {
  const code = h("code", {});
  const pre = h("pre", { tabIndex: 0, "aria-label": label }, code);
  Promise.resolve(text).then((resolved) => (code.textContent = resolved));
  return h(
    "div",
    { class: "line" },
    pre,
    h(
      "button",
      {
        type: "button",
        class: "small",
        "aria-label": `Copy: ${label}`,
        onclick: () => copyToClipboard(code.textContent),
      },
      "Copy",
    ),
  );
}

/** An example body for a stream: a value, or values of all variables, by name if they have names. */
export function exampleBody(variables, last) {
  const lastValue = (i) => last?.[i] ?? 21.5;
  if (variables.length < 2) return String(lastValue(0));
  if (variables.every((name, i) => name === String(i)))
    return JSON.stringify({ values: variables.map((_, i) => lastValue(i)) });
  return JSON.stringify({ values: Object.fromEntries(variables.map((name, i) => [name, lastValue(i)])) }).replace(
    /'/g,
    "\\u0027",
  );
}

/** The page without streams. */
export function emptyState() {
  return h(
    "section",
    { class: "card first-steps" },
    h("h1", {}, "No streams yet"),
    h(
      "p",
      { class: "soft" },
      "Post a number to create a stream. After the first points it rejects outliers, follows changes and raises alarms. It needs no settings.",
    ),
    h("h2", {}, "From a shell"),
    codeLine(curlLine("boiler"), "a curl command that posts a point"),
    h("h2", {}, "From Python"),
    codeLine(
      pythonLine("boiler").then((text) => `import httpx\n${text}`),
      "Python that posts a point",
    ),
    h("h2", {}, "Demo"),
    codeLine("limpet serve --demo", "the command that starts a demo"),
    h(
      "p",
      { class: "soft small" },
      "For many points, times and several variables, see the ",
      h("a", { href: "/api" }, "API"),
      ". To analyse a file, open the ",
      h("a", { href: "/explorer" }, "explorer"),
      ".",
    ),
  );
}
