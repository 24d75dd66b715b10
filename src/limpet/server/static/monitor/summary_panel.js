// The learner's summary of a stream, which is polled while the panel is open.

import { api } from "../common/api.js";
import { h } from "../common/dom.js";

const POLL_INTERVAL_MS = 5000;

/** `path` is that of the stream, `text` the present summary; polling stops when the panel is removed. */
export function createSummaryPanel(path, text) {
  const output = h("pre", {}, text ?? "Not initialized yet.");
  const details = h(
    "details",
    { class: "card summary-panel" },
    h("summary", {}, "Summary"),
    h(
      "p",
      { class: "soft small" },
      "The learner follows the level and the spread of the stream and rejects points beyond its threshold. A p-value is the probability of a point at least as unusual. The false-alarm rate bounds the expected number of false alarms per point of a stable stream, for changes and for anomalies each.",
    ),
    output,
  );
  const refresh = async () => {
    if (!details.open || !details.isConnected) return;
    const stream = await api(path).catch(() => null);
    if (stream?.summary) output.textContent = stream.summary;
    setTimeout(refresh, POLL_INTERVAL_MS);
  };
  details.addEventListener("toggle", refresh);
  return details;
}
