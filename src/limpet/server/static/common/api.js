// Calls of the API, and the login dialog.

import { h } from "./dom.js";
import { capitalize } from "./format.js";

export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    Object.assign(this, { status, code });
  }
}

/** Call the API; errors are ApiError. `body` is sent as JSON unless it is a Blob. */
export async function api(path, { method = "GET", body, headers = {}, signal } = {}) {
  const raw = body instanceof Blob;
  const options = {
    method,
    signal,
    credentials: "same-origin",
    headers: body === undefined || raw ? headers : { "Content-Type": "application/json", ...headers },
    body: body === undefined ? undefined : raw ? body : JSON.stringify(body),
  };
  const { response, text } = await fetchText(path, options);
  if (response.status === 401) {
    await login();
    return api(path, { method, body, headers, signal });
  }
  const data = text && response.headers.get("Content-Type")?.startsWith("application/json") ? JSON.parse(text) : text;
  if (!response.ok) {
    const error = data?.error ?? { code: "unknown", message: `${response.status} ${response.statusText}` };
    throw new ApiError(response.status, error.code, error.message);
  }
  return data;
}

/** Fetch a response with its text; without a connection, the TypeError of fetch has a readable message. */
async function fetchText(path, options) {
  try {
    const response = await fetch(path, options);
    return { response, text: await response.text() };
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw Object.assign(new TypeError("The server does not respond.", { cause: error }), { code: "no_connection" });
  }
}

let pendingLogin = null;

/** Send a token to the server; null if it is correct, else the error. */
async function submitToken(token) {
  try {
    const response = await fetch("/session", {
      method: "POST",
      credentials: "same-origin",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ token }),
    });
    return response.ok ? null : ((await response.json()).error?.message ?? "wrong token");
  } catch {
    return "the server does not respond";
  }
}

/** Show the login dialog, once for all calls that wait for it. */
function login() {
  pendingLogin ??= new Promise((resolve) => {
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
    }); // for password managers
    const errorText = h("p", { class: "wrong", role: "alert" });
    const form = h(
      "form",
      { method: "dialog", class: "login" },
      h("h2", {}, "This server requires a token"),
      h(
        "p",
        { class: "soft" },
        "The token that ",
        h("code", {}, "limpet serve"),
        " was started with. The browser keeps the session until you log out or close it.",
      ),
      name,
      h("label", { for: "token" }, "Token"),
      input,
      errorText,
      h("button", { class: "primary", type: "submit" }, "Open"),
    );
    const dialog = h("dialog", { "aria-label": "Login" }, form);
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const problem = await submitToken(input.value);
      if (problem !== null) {
        errorText.textContent = capitalize(problem);
        input.select();
        return;
      }
      dialog.close();
      dialog.remove();
      resolve();
    });
    document.body.append(dialog);
    dialog.showModal();
  }).finally(() => (pendingLogin = null));
  return pendingLogin;
}
