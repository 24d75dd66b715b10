// Choosing what to look at: built-in streams, a file, its keys and columns; and what was understood of it.

import { api, h, tell, toast, whole } from "../common.js";
import { saveAsCsv } from "./code.js";

const TAKEN = ".csv,.tsv,.txt,.jsonl,.ndjson,.json,.parquet,.pq,.gz";

/** state: {builtins, limits, data, file}. choose({id, key, columns, file}) loads; returns {element, show()}. */
export function picker(state, choose) {
  const builtins = h("div", { class: "builtins", role: "group", "aria-label": "Built-in streams" });
  const input = h("input", { type: "file", accept: TAKEN, class: "sr", id: "file", tabIndex: -1 });
  const button = h("button", { type: "button", class: "primary", onclick: () => input.click() }, "Open a file…");
  button.title = "CSV, TSV, JSON lines, Parquet; also packed (.gz)";
  input.addEventListener("change", () => {
    if (input.files.length) upload(state, input.files[0], choose);
    input.value = "";
  });
  const drop = h("div", { class: "drop" }, button, h("span", { class: "small soft" }, "or drop it on the page"), input);
  const understood = h("div", { class: "understood", "aria-live": "polite" });
  const streams = h("div", {});
  const columns = h("div", {});
  const element = h(
    "section",
    { class: "card picker", "aria-label": "Data" },
    drop,
    builtins,
    understood,
    streams,
    columns,
  );
  dropAnywhere((file) => upload(state, file, choose));

  function show() {
    const { data } = state;
    builtins.replaceChildren(
      ...state.builtins.map((one) =>
        h(
          "button",
          {
            type: "button",
            title: one.told,
            "data-id": one.id,
            "aria-pressed": String(data?.id === one.id),
            onclick: () => choose({ id: one.id, suggest: true }),
          },
          one.title,
        ),
      ),
    );
    if (!data) return;
    understood.replaceChildren(...wordsOn(data, state.limits));
    streams.replaceChildren(...(data.keys ? [keyChoice(data, choose)] : []));
    columns.replaceChildren(...(data.all_columns.length > 1 ? [columnChoice(data, state.limits, choose)] : []));
  }
  return { element, show };
}

async function upload(state, file, choose) {
  if (file.size > state.limits.most_bytes) {
    toast(`${file.name} is larger than ${state.limits.most_bytes >> 20} MB: holdfast detect takes any size.`, "error");
    return;
  }
  try {
    const answer = await give(file);
    await choose({ id: answer.id, file, suggest: true });
  } catch (error) {
    tell(error);
  }
}

/** Gives the server a file; it answers with its id. */
export const give = (file) =>
  api(`/explore/data?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file });

function dropAnywhere(take) {
  const veil = h("div", { class: "veil", hidden: true }, h("p", {}, "Drop it: it is read at once"));
  document.body.append(veil);
  let depth = 0;
  const hasFile = (event) => event.dataTransfer?.types?.includes("Files");
  addEventListener("dragenter", (event) => {
    if (hasFile(event)) veil.hidden = ++depth === 0;
  });
  addEventListener("dragleave", (event) => {
    if (hasFile(event)) veil.hidden = --depth <= 0;
  });
  addEventListener("dragover", (event) => hasFile(event) && event.preventDefault());
  addEventListener("drop", (event) => {
    depth = 0;
    veil.hidden = true;
    if (!event.dataTransfer?.files.length) return;
    event.preventDefault();
    take(event.dataTransfer.files[0]);
  });
}

function wordsOn(data, limits) {
  const { told } = data;
  if (told.sentence)
    return [
      h(
        "p",
        { class: "small" },
        h("b", {}, told.title),
        `. ${told.sentence} `,
        h("button", { type: "button", class: "linklike", onclick: () => saveAsCsv(data) }, "Save as CSV"),
      ),
    ];
  const lines = [
    h(
      "p",
      { class: "small" },
      h("b", {}, data.name),
      `: ${whole(data.n_rows)} rows${data.key !== null ? ` of ${data.key}` : ""}`,
    ),
  ];
  const pairs = [
    ["time", told.time ? `${told.time} (${told.time_kind})` : "none found"],
    ["key", told.key],
    [
      "left out",
      Object.entries(told.left_out)
        .map(([name, why]) => `${name} (${why})`)
        .join(", "),
    ],
    ["late or repeated", told.late ? `${whole(told.late)} points, skipped` : ""],
    [
      "not usable",
      Object.entries(told.refused)
        .map(([why, n]) => `${whole(n)} ${why}`)
        .join(", "),
    ],
  ];
  lines.push(
    h(
      "dl",
      { class: "pairs small" },
      pairs.filter(([, words]) => words).flatMap(([name, words]) => [h("dt", {}, name), h("dd", {}, words)]),
    ),
  );
  for (const hint of told.hints) lines.push(h("p", { class: "small soft" }, hint));
  if (told.cut)
    lines.push(
      h(
        "p",
        { class: "notice small" },
        `Only the first ${whole(limits.most_values)} values are looked at here. `,
        h("code", {}, "holdfast detect"),
        " takes the whole file.",
      ),
    );
  return lines;
}

function keyChoice(data, choose) {
  const select = h(
    "select",
    { id: "key" },
    data.keys.map(({ key, rows }) => h("option", { value: key }, `${key} (${whole(rows)})`)),
  );
  select.value = data.key;
  select.addEventListener("change", () => choose({ id: data.id, key: select.value }));
  return h("div", { class: "field inline" }, h("label", { for: "key" }, `Stream (${data.told.key})`), select);
}

function columnChoice(data, limits, choose) {
  const chosen = new Set(data.columns);
  const toggle = (name) => {
    chosen.has(name) ? chosen.delete(name) : chosen.add(name);
    if (chosen.size && chosen.size <= limits.most_columns)
      choose({ id: data.id, key: data.key, columns: data.all_columns.filter((one) => chosen.has(one)) });
    else toast(chosen.size ? `At most ${limits.most_columns} columns at once.` : "At least one column.", "error");
    if (!chosen.size || chosen.size > limits.most_columns) chosen.has(name) ? chosen.delete(name) : chosen.add(name);
  };
  const chips = data.all_columns.map((name) =>
    h(
      "button",
      { type: "button", class: "chip", "aria-pressed": String(chosen.has(name)), onclick: () => toggle(name) },
      name,
    ),
  );
  return h(
    "div",
    { class: "columns", role: "group", "aria-label": "Columns to look at" },
    h("span", { class: "small soft" }, "Columns, learnt together"),
    h("div", { class: "chips" }, chips),
  );
}
