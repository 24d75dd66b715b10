// The end of a stream: somebody is asked before it is deleted, and told when there is none of its name.

import { api, h, tell, toast, whole } from "../common.js";
import { curlLine, line } from "./post.js";

export const back = () => h("a", { class: "back button small", href: "#" }, "← Streams");

/** Asks, deletes, and calls `done()`. */
export function askToDelete({ key, path, nPoints, done }) {
  const dialog = h("dialog", { class: "stack", "aria-label": "Delete this stream" });
  const go = async () => {
    dialog.close();
    try {
      await api(path, { method: "DELETE" });
      toast("Deleted.");
      done();
    } catch (error) {
      tell(error);
    }
  };
  dialog.append(
    h("h2", {}, "Delete ", h("span", { class: "key" }, key), "?"),
    h(
      "p",
      {},
      `Its points (${whole(nPoints)}), its alarms and notes, and what was learnt are gone then. This cannot be taken back.`,
    ),
    h(
      "div",
      { class: "row" },
      h("button", { type: "button", class: "primary dangerous", onclick: go }, "Delete"),
      h("button", { type: "button", onclick: () => dialog.close() }, "Keep it"),
    ),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

/** What the page of a stream shows when there is none. */
export const nothingHere = (key) => [
  h("header", { class: "row title" }, back(), h("h1", { tabIndex: -1 }, key)),
  h(
    "div",
    { class: "card stack tight" },
    h("p", {}, "There is no stream of this name. It appears as soon as a point is posted:"),
    line(curlLine(key), "a curl command that posts to this stream"),
  ),
];
