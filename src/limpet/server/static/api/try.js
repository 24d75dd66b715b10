// A form that calls a GET of the API and shows what comes back.

import { api, ApiError, h } from "../common.js";
import { pretty } from "./schema.js";

const LONG = 20000; // characters of an answer that are shown

export function tryIt(path, parameters) {
  const asked = parameters.filter((one) => one.in === "path" || one.in === "query");
  const inputs = asked.map((one) => [
    one,
    h("input", {
      type: "text",
      name: one.name,
      required: one.in === "path",
      placeholder: one.in === "path" ? "" : String(one.schema?.default ?? ""),
    }),
  ]);
  const shown = h("pre", { tabIndex: 0, hidden: true, "aria-live": "polite" });
  const form = h(
    "form",
    { class: "try row" },
    inputs.map(([one, input]) => h("label", {}, h("span", { class: "soft small" }, one.name), input)),
    h("button", { class: "small primary", type: "submit" }, "Send"),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    shown.hidden = false;
    shown.textContent = "…";
    shown.textContent = await answer(address(path, inputs));
  });
  return h("details", { class: "trying" }, h("summary", {}, "Try it"), form, shown);
}

function address(path, inputs) {
  const query = new URLSearchParams();
  for (const [one, input] of inputs) {
    if (one.in === "path")
      path = path.replace(new RegExp(`\\{${one.name}(:[^}]*)?\\}`), () => encodeURIComponent(input.value));
    else if (input.value) query.set(one.name, input.value);
  }
  return query.size ? `${path}?${query}` : path;
}

async function answer(url) {
  try {
    const value = await api(url);
    const text = typeof value === "string" ? value : pretty(value);
    return text.length > LONG
      ? `${text.slice(0, LONG)}\n… ${text.length - LONG} characters more`
      : text || "(an empty answer)";
  } catch (error) {
    return error instanceof ApiError ? `${error.status} ${error.code}\n${error.message}` : String(error);
  }
}
