// What a stream has learnt, in the learner's own words, asked for while the fold is open.

import { api, h } from "../common.js";

const EVERY = 5000; // ms

/** `path` is that of the stream, `text` what is known so far; it stops by itself once it has left the page. */
export function learnt(path, text) {
  const words = h("pre", {}, text ?? "Nothing yet.");
  const fold = h(
    "details",
    { class: "card learnt" },
    h("summary", {}, "What it has learnt"),
    h(
      "p",
      { class: "soft small" },
      "The learner (SRA) follows the level and the spread of the stream and drops points beyond its threshold. A p-value says how rare such a point is: far below 1 is rare. The promise bounds how often there is an alarm though nothing happens.",
    ),
    words,
  );
  const ask = async () => {
    if (!fold.open || !fold.isConnected) return;
    const known = await api(path).catch(() => null);
    if (known?.summary) words.textContent = known.summary;
    setTimeout(ask, EVERY);
  };
  fold.addEventListener("toggle", ask);
  return fold;
}
