// The dialog to delete a stream, and the page of a stream that does not exist.

import { api } from "../common/api.js";
import { h, showError, toast } from "../common/dom.js";
import { pluralize } from "../common/format.js";
import { curlLine, codeLine } from "./snippets.js";

export const backLink = () => h("a", { class: "back button small", href: "#" }, "← Streams");

/** Confirm, delete the stream, and call `onDeleted()`. */
export function openDeleteDialog({ key, path, nPoints, onDeleted }) {
  const dialog = h("dialog", { class: "stack", "aria-label": "Delete this stream" });
  const confirmDelete = async () => {
    dialog.close();
    try {
      await api(path, { method: "DELETE" });
      toast("Deleted.");
      onDeleted();
    } catch (error) {
      showError(error);
    }
  };
  dialog.append(
    h("h2", {}, "Delete ", h("span", { class: "key" }, key), "?"),
    h(
      "p",
      {},
      `This permanently deletes ${pluralize(nPoints, "point")}, all alarms and notes, and the state of its learner.`,
    ),
    h(
      "div",
      { class: "row" },
      h("button", { type: "button", class: "primary dangerous", onclick: confirmDelete }, "Delete"),
      h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"),
    ),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

/** The page of a stream that does not exist. */
export const notFoundMessage = (key) => [
  h("header", { class: "row title" }, backLink(), h("h1", { tabIndex: -1 }, key)),
  h(
    "div",
    { class: "card stack tight" },
    h("p", {}, "This stream does not exist. Post a point to create it:"),
    codeLine(curlLine(key), "a curl command that posts to this stream"),
  ),
];
