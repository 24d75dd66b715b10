// Choose a dataset: example streams, a file, its key and columns; show its schema.

import { api } from "../common/api.js";
import { h, toast } from "../common/dom.js";
import { pluralize, formatInteger } from "../common/format.js";
import { saveAsCsv } from "./code.js";

const MISSING_FILE_TEXT =
  "The file of this link is not on the server. Drop it on the page to open the link. Until then, this is an example:";
const ACCEPTED_SUFFIXES = ".csv,.tsv,.txt,.jsonl,.ndjson,.json,.parquet,.pq,.gz";

/**
 * state: {examples, limits, data, pendingLink}. selectData({id, key, columns}) opens data of the server, loadFile(file) uploads a file,
 * setKeyColumn(column or null) sets the key of the file. Returns {element, show()}.
 */
export function createPicker(state, { selectData, loadFile, setKeyColumn }) {
  const exampleButtons = h("div", { class: "builtins", role: "group", "aria-label": "Example streams" });
  const input = h("input", { type: "file", accept: ACCEPTED_SUFFIXES, class: "sr", id: "file", tabIndex: -1 });
  const button = h("button", { type: "button", class: "primary", onclick: () => input.click() }, "Open a file…");
  button.title = "CSV, TSV, JSON lines, Parquet; also compressed (.gz)";
  input.addEventListener("change", () => {
    if (input.files.length) loadIfSmall(input.files[0]);
    input.value = "";
  });
  const drop = h("div", { class: "drop" }, button, h("span", { class: "small soft" }, "or drop it on the page"), input);
  const schemaPanel = h("div", { class: "schema", "aria-live": "polite" });
  const streams = h("div", {});
  const columns = h("div", {});
  const element = h(
    "section",
    { class: "card picker", "aria-label": "Data" },
    drop,
    exampleButtons,
    schemaPanel,
    streams,
    columns,
  );
  enableFileDrop(loadIfSmall);

  function loadIfSmall(file) {
    const maxBytes = state.limits.max_bytes;
    if (file.size <= maxBytes) loadFile(file);
    else toast(`${file.name} is larger than ${maxBytes >> 20} MB. Use limpet detect for larger files.`, "error");
  }

  function show() {
    const { data } = state;
    exampleButtons.replaceChildren(
      ...state.examples.map((example) =>
        h(
          "button",
          {
            type: "button",
            title: example.description,
            "data-id": example.id,
            "aria-pressed": String(data?.id === example.id),
            onclick: () => selectData({ id: example.id, suggest: true }),
          },
          example.title,
        ),
      ),
    );
    if (!data) return;
    const missingFile = h("p", { class: "notice small" }, MISSING_FILE_TEXT);
    schemaPanel.replaceChildren(...(state.pendingLink ? [missingFile] : []), ...describeData(data, state.limits));
    const keyCandidates = [data.metadata.key_column, ...(data.metadata.key_candidates ?? [])].filter(Boolean);
    streams.replaceChildren(
      ...(keyCandidates.length ? [keyColumnSelect(data, keyCandidates, setKeyColumn)] : []),
      ...(data.keys ? [keySelect(data, selectData)] : []),
    );
    columns.replaceChildren(...(data.all_columns.length > 1 ? [columnChips(data, state.limits, selectData)] : []));
  }
  return { element, show };
}

/** Upload a file, with the column of its key, if that is given; the response has its id. */
export function uploadFile(file, keyColumn = null) {
  const query = new URLSearchParams({ name: file.name });
  if (keyColumn !== null) query.set("key_column", keyColumn);
  return api(`/explore/data?${query}`, { method: "POST", body: file });
}

function enableFileDrop(loadFile) {
  const dropOverlay = h("div", { class: "drop-overlay", hidden: true }, h("p", {}, "Drop the file to open it"));
  document.body.append(dropOverlay);
  let depth = 0;
  const hasFile = (event) => event.dataTransfer?.types?.includes("Files");
  addEventListener("dragenter", (event) => {
    if (hasFile(event)) dropOverlay.hidden = ++depth === 0;
  });
  addEventListener("dragleave", (event) => {
    if (hasFile(event)) dropOverlay.hidden = --depth <= 0;
  });
  addEventListener("dragover", (event) => hasFile(event) && event.preventDefault());
  addEventListener("drop", (event) => {
    depth = 0;
    dropOverlay.hidden = true;
    if (!event.dataTransfer?.files.length) return;
    event.preventDefault();
    loadFile(event.dataTransfer.files[0]);
  });
}

function describeData(data, limits) {
  const { metadata } = data;
  if (metadata.description)
    return [
      h(
        "p",
        { class: "small" },
        h("b", {}, metadata.title),
        `. ${metadata.description} `,
        h("button", { type: "button", class: "linklike", onclick: () => saveAsCsv(data) }, "Save as CSV"),
      ),
    ];
  const lines = [
    h(
      "p",
      { class: "small" },
      h("b", {}, data.name),
      `: ${pluralize(data.n_rows, "row")}${data.key !== null ? ` of ${data.key}` : ""}`,
    ),
  ];
  const pairs = [
    ["time", metadata.time ? `${metadata.time} (${metadata.time_kind})` : "none"],
    ["key", metadata.key],
    [
      "ignored",
      Object.entries(metadata.ignored)
        .map(([name, why]) => `${name} (${why})`)
        .join(", "),
    ],
    ["skipped", metadata.n_skipped ? `${pluralize(metadata.n_skipped, "point")}, late or duplicate` : ""],
    [
      "malformed",
      Object.entries(metadata.malformed)
        .map(([why, n]) => `${formatInteger(n)} ${why}`)
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
  for (const hint of metadata.hints) lines.push(h("p", { class: "small soft" }, hint));
  if (metadata.is_truncated)
    lines.push(
      h(
        "p",
        { class: "notice small" },
        `Only the first ${formatInteger(limits.max_values)} values are shown. `,
        h("code", {}, "limpet detect"),
        " reads the whole file.",
      ),
    );
  return lines;
}

function keyColumnSelect(data, columns, setKeyColumn) {
  const select = h(
    "select",
    { id: "key-column" },
    h("option", { value: "" }, "none: one stream"),
    columns.map((name) => h("option", { value: name }, name)),
  );
  select.value = data.metadata.key_column ?? "";
  select.addEventListener("change", () => setKeyColumn(select.value || null));
  return h("div", { class: "field inline" }, h("label", { for: "key-column" }, "Streams by"), select);
}

function keySelect(data, selectData) {
  const select = h(
    "select",
    { id: "key" },
    data.keys.map(({ key, rows }) => h("option", { value: key }, `${key} (${formatInteger(rows)})`)),
  );
  select.value = data.key;
  select.addEventListener("change", () => selectData({ id: data.id, key: select.value, columns: chosenColumns(data) }));
  return h("div", { class: "field inline" }, h("label", { for: "key" }, `Stream (${data.metadata.key})`), select);
}

/** The selected columns, to keep them for another key; null for all. */
const chosenColumns = (data) => (data.columns.length < data.all_columns.length ? data.columns : null);

function columnChips(data, limits, selectData) {
  const chosen = new Set(data.columns);
  const toggle = (name) => {
    chosen.has(name) ? chosen.delete(name) : chosen.add(name);
    if (chosen.size && chosen.size <= limits.max_columns)
      selectData({ id: data.id, key: data.key, columns: data.all_columns.filter((name) => chosen.has(name)) });
    else toast(chosen.size ? `At most ${limits.max_columns} columns at once.` : "At least one column.", "error");
    if (!chosen.size || chosen.size > limits.max_columns) chosen.has(name) ? chosen.delete(name) : chosen.add(name);
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
    { class: "columns", role: "group", "aria-label": "Columns" },
    h(
      "span",
      { class: "small soft" },
      data.columns.length < data.all_columns.length
        ? `${data.columns.length} of ${data.all_columns.length} columns are selected and learned together. Press a name to add or remove it.`
        : "Columns, learned together",
    ),
    h("div", { class: "chips" }, chips),
  );
}
