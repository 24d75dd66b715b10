// What all pages share: calls of the API, the bar at the top, the login, short messages, numbers as people read them.

export class ApiError extends Error {
  constructor(status, code, message, details) {
    super(message);
    Object.assign(this, { status, code, details });
  }
}

/** Calls the API; what is wrong comes as an ApiError. `body` is sent as JSON unless it is a Blob. */
export async function api(path, { method = "GET", body, headers = {}, signal } = {}) {
  const raw = body instanceof Blob;
  const asked = {
    method,
    signal,
    credentials: "same-origin",
    headers: body === undefined || raw ? headers : { "Content-Type": "application/json", ...headers },
    body: body === undefined ? undefined : raw ? body : JSON.stringify(body),
  };
  const { response, text } = await answered(path, asked);
  if (response.status === 401) {
    await login();
    return api(path, { method, body, headers, signal });
  }
  const answer = text && response.headers.get("Content-Type")?.startsWith("application/json") ? JSON.parse(text) : text;
  if (!response.ok) {
    const error = answer?.error ?? { code: "unknown", message: `${response.status} ${response.statusText}` };
    throw new ApiError(response.status, error.code, error.message, error.details);
  }
  return answer;
}

/** The answer with all of its text; that a server is away is a TypeError, as with fetch, but in words. */
async function answered(path, asked) {
  try {
    const response = await fetch(path, asked);
    return { response, text: await response.text() };
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw Object.assign(new TypeError("The server does not answer.", { cause: error }), { code: "no_answer" });
  }
}

/** An element: `h("p", {class: "soft"}, "text", child)`. Text is always text, never HTML. */
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

/** A short message at the corner, read out by screen readers. */
export function toast(message, kind = "") {
  let corner = document.getElementById("toasts");
  if (!corner) document.body.append((corner = h("div", { id: "toasts", role: "status", "aria-live": "polite" })));
  const notice = h("div", { class: `notice ${kind}` }, message);
  corner.append(notice);
  setTimeout(() => notice.remove(), kind === "error" ? 8000 : 3500);
}

/** Tells of an error, unless the call was given up on purpose. */
export function tell(error) {
  if (error?.name === "AbortError") return;
  console.error(error);
  const words = error?.message ?? String(error);
  toast(error?.code === "unreadable" ? words : sentence(words), "error"); // the former begins with the name of a file
}

/** A message of the server as it stands by itself on a page; what looks like a name of a file stays as it is. */
const sentence = (text) => (/^[a-z]+[\s,]/.test(text) ? text.slice(0, 1).toUpperCase() + text.slice(1) : text);

let asking = null;

/** Shows a token to the server: null if it is the right one, else what is wrong. */
async function shown(token) {
  try {
    const response = await fetch("/session", {
      method: "POST",
      credentials: "same-origin",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ token }),
    });
    return response.ok ? null : ((await response.json()).error?.message ?? "this is not the token");
  } catch {
    return "the server does not answer";
  }
}

/** Asks for the token once, however many calls wait for it. */
function login() {
  asking ??= new Promise((resolve) => {
    const input = h("input", {
      type: "password",
      id: "token",
      name: "token",
      autocomplete: "current-password",
      required: true,
    });
    const name = h("input", {
      type: "text",
      name: "username",
      autocomplete: "username",
      value: "limpet",
      hidden: true,
    }); // for keepers of passwords
    const wrong = h("p", { class: "wrong", role: "alert" });
    const form = h(
      "form",
      { method: "dialog", class: "login" },
      h("h2", {}, "This server asks for its token"),
      h(
        "p",
        { class: "soft" },
        "The one that ",
        h("code", {}, "limpet serve"),
        " was started with. This browser keeps it until you log out or close it.",
      ),
      name,
      h("label", { for: "token" }, "Token"),
      input,
      wrong,
      h("button", { class: "primary", type: "submit" }, "Open"),
    );
    const dialog = h("dialog", { "aria-label": "Login" }, form);
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const told = await shown(input.value);
      if (told !== null) {
        wrong.textContent = sentence(told);
        input.select();
        return;
      }
      dialog.close();
      dialog.remove();
      resolve();
    });
    document.body.append(dialog);
    dialog.showModal();
  }).finally(() => (asking = null));
  return asking;
}

// Numbers and times

/** A number in few digits: 12,345 · 0.0123 · 1.2e-7. */
export function few(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e7)) {
    return value.toExponential(Math.max(0, digits - 2)).replace(/\.?0*e\+?/, "e");
  }
  return Number(value.toPrecision(digits)).toLocaleString("en-US", {
    maximumSignificantDigits: Math.max(digits, Math.ceil(Math.log10(size + 1))),
  });
}

export const whole = (value) => (value ?? 0).toLocaleString("en-US");

/** So many of something: 1 row, 2,000 rows. */
export const several = (n, thing) => `${whole(n)} ${thing}${n === 1 ? "" : "s"}`;

/** How long ago, in words; seconds since 1970. */
export function ago(seconds) {
  if (!seconds) return "never";
  const past = Math.max(0, Date.now() / 1000 - seconds);
  if (past < 2) return "now";
  for (const [unit, size] of [
    ["d", 86400],
    ["h", 3600],
    ["min", 60],
    ["s", 1],
  ]) {
    if (past >= size) return `${Math.floor(past / size)} ${unit} ago`;
  }
}

// The bar

const LOGO =
  '<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" aria-hidden="true"><path d="M12 2c-4 4 4 7 0 11M12 13c-1 3-4 3-6 8M12 13c0 3-1 5-1 8M12 13c1 3 2 4 3 8M12 13c2 2 5 3 7 7"/></svg>';

/** Puts the bar on top of the page; `current` is "monitor", "explorer" or "api". Returns the place at its end. */
export function bar(current) {
  const pages = { monitor: ["/", "Monitor"], explorer: ["/explorer", "Explorer"], api: ["/api", "API"] };
  const brand = h("a", { class: "brand", href: "/" });
  brand.innerHTML = LOGO; // a constant of this file
  brand.append("limpet");
  const end = h("div", { class: "end" });
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
      h("div", { class: "end" }, end, theme),
    ),
  );
  return end;
}

/** Whether the page is dark now. */
export const isDark = () => document.documentElement.dataset.theme === "dark";

/** A colour of the style, by its name: `colour("estimate")`. */
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** Copies a text, and says so. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = h("textarea", { class: "sr" }, text); // where there is no clipboard: a page without TLS
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  toast("Copied.");
}
