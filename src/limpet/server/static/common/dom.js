// DOM elements, messages, the header of a page, the clipboard.

import { capitalize } from "./format.js";

/** Create an element: `h("p", {class: "soft"}, "text", child)`. Strings become text nodes, never HTML. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && typeof value !== "string") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Show a short message in the corner, which screen readers announce. */
export function toast(message, kind = "") {
  let corner = document.getElementById("toasts");
  if (!corner) document.body.append((corner = h("div", { id: "toasts", role: "status", "aria-live": "polite" })));
  const notice = h("div", { class: `notice ${kind}` }, message);
  corner.append(notice);
  setTimeout(() => notice.remove(), kind === "error" ? 8000 : 3500);
}

/** Show an error, unless the call was aborted. */
export function showError(error) {
  if (error?.name === "AbortError") return;
  console.error(error);
  const message = error?.message ?? String(error);
  toast(error?.code === "unreadable" ? message : capitalize(message), "error"); // the former starts with the name of a file
}

const LOGO =
  '<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true"><path d="M3 16C5 10 8 5 11 4c4 1 8 6 10 12zM11 4 8 16M11 4l4 12M2 21c2-1.6 3.3-1.6 5 0s3.3 1.6 5 0 3.3-1.6 5 0 3 1.6 5 0"/></svg>';

/** Add the header of the page; `current` is "monitor", "explorer" or "api". Returns the element for actions. */
export function createHeader(current) {
  const pages = { monitor: ["/", "Monitor"], explorer: ["/explorer", "Explorer"], api: ["/api", "API"] };
  const brand = h("a", { class: "brand", href: "/" });
  brand.innerHTML = LOGO; // a constant of this file
  brand.append("limpet");
  const actions = h("div", { class: "end" });
  const theme = h("button", { class: "quiet", type: "button", id: "theme", title: "Light or dark" }, "◐");
  theme.setAttribute("aria-label", "Switch between light and dark");
  theme.addEventListener("click", () => {
    localStorage.setItem("limpet-theme", isDark() ? "light" : "dark");
    document.dispatchEvent(new Event("themechosen"));
  });
  const links = Object.entries(pages).map(([name, [href, title]]) =>
    h("a", { href, "aria-current": name === current ? "page" : undefined }, title),
  );
  document.body.prepend(
    h("a", { class: "skip", href: "#main" }, "Skip to content"),
    h(
      "header",
      { class: "bar" },
      brand,
      h("nav", { "aria-label": "Pages" }, links),
      h("div", { class: "end" }, actions, theme),
    ),
  );
  return actions;
}

/** Whether the page has the dark theme. */
export const isDark = () => document.documentElement.dataset.theme === "dark";

/** A color of the style sheet by name: `cssColor("estimate")`. */
export const cssColor = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** Copy a string to the clipboard. */
export async function copyToClipboard(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = h("textarea", { class: "sr" }, text); // a page without TLS has no clipboard
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  toast("Copied.");
}
