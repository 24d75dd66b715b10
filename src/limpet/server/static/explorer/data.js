// Choosing what to look at: built-in streams, a file, its keys and columns; and what was understood of it.

import { api, h, several, toast, whole } from "../common.js";
import { saveAsCsv } from "./code.js";

const AWAITED = "The link's data are not here. Drop its file: then it is shown as the link says. Until then, this:";
const TAKEN = ".csv,.tsv,.txt,.jsonl,.ndjson,.json,.parquet,.pq,.gz";

/**
 * state: {builtins, limits, data, awaited}. choose({id, key, columns}) looks at what the server has, take(file) at a file,
 * divide(column or null) has the streams of the file told apart by this column. Returns {element, show()}.
 */
export function picker(state, { choose, take, divide }) {
  const builtins = h("div", { class: "builtins", role: "group", "aria-label": "Built-in streams" });
  const input = h("input", { type: "file", accept: TAKEN, class: "sr", id: "file", tabIndex: -1 });
  const button = h("button", { type: "button", class: "primary", onclick: () => input.click() }, "Open a file…");
  button.title = "CSV, TSV, JSON lines, Parquet; also packed (.gz)";
  input.addEventListener("change", () => {
    if (input.files.length) takeIfSmall(input.files[0]);
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
  dropAnywhere(takeIfSmall);

  function takeIfSmall(file) {
    const most = state.limits.most_bytes;
    if (file.size <= most) take(file);
    else toast(`${file.name} is larger than ${most >> 20} MB: limpet detect takes any size.`, "error");
  }

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
    const awaited = h("p", { class: "notice small" }, AWAITED);
    understood.replaceChildren(...(state.awaited ? [awaited] : []), ...wordsOn(data, state.limits));
    const divided = [data.told.by, ...(data.told.may_be_keys ?? [])].filter(Boolean);
    streams.replaceChildren(
      ...(divided.length ? [divisionChoice(data, divided, divide)] : []),
      ...(data.keys ? [keyChoice(data, choose)] : []),
    );
    columns.replaceChildren(...(data.all_columns.length > 1 ? [columnChoice(data, state.limits, choose)] : []));
  }
  return { element, show };
}

/** Gives the server a file, whose streams are told apart by a column if one is named; it answers with its id. */
export function give(file, by = null) {
  const query = new URLSearchParams({ name: file.name });
  if (by !== null) query.set("by", by);
  return api(`/explore/data?${query}`, { method: "POST", body: file });
}

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
      `: ${several(data.n_rows, "row")}${data.key !== null ? ` of ${data.key}` : ""}`,
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
    ["late or repeated", told.late ? `${several(told.late, "point")}, skipped` : ""],
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
        h("code", {}, "limpet detect"),
        " takes the whole file.",
      ),
    );
  return lines;
}

function divisionChoice(data, columns, divide) {
  const select = h(
    "select",
    { id: "by" },
    h("option", { value: "" }, "nothing: one stream"),
    columns.map((name) => h("option", { value: name }, name)),
  );
  select.value = data.told.by ?? "";
  select.addEventListener("change", () => divide(select.value || null));
  return h("div", { class: "field inline" }, h("label", { for: "by" }, "Streams by"), select);
}

function keyChoice(data, choose) {
  const select = h(
    "select",
    { id: "key" },
    data.keys.map(({ key, rows }) => h("option", { value: key }, `${key} (${whole(rows)})`)),
  );
  select.value = data.key;
  select.addEventListener("change", () => choose({ id: data.id, key: select.value, columns: chosenColumns(data) }));
  return h("div", { class: "field inline" }, h("label", { for: "key" }, `Stream (${data.told.key})`), select);
}

/** The columns if somebody has chosen them, to keep them for another key. */
const chosenColumns = (data) => (data.columns.length < data.all_columns.length ? data.columns : null);

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
    h(
      "span",
      { class: "small soft" },
      data.columns.length < data.all_columns.length
        ? `${data.columns.length} of ${data.all_columns.length} columns are looked at, learnt together. Press a name to take it or leave it.`
        : "Columns, learnt together",
    ),
    h("div", { class: "chips" }, chips),
  );
}
