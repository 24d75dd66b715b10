// The run as code, and an example stream as a file.

import { copyToClipboard, h } from "../common/dom.js";

/** Returns {element, show(run)}: Python and the command, each with a button that copies it. */
export function createCodePanel() {
  const python = h("pre", { tabIndex: 0 });
  const command = h("pre", { tabIndex: 0 });
  const copyPython = h(
    "button",
    { type: "button", id: "copy-python", onclick: () => copyToClipboard(python.textContent) },
    "Copy as Python",
  );
  const copyCommand = h(
    "button",
    { type: "button", id: "copy-command", onclick: () => copyToClipboard(command.textContent) },
    "Copy as command",
  );
  const copyLink = h(
    "button",
    { type: "button", class: "quiet", onclick: () => copyToClipboard(location.href) },
    "Copy link",
  );
  const element = h(
    "section",
    { class: "card code", "aria-label": "Code" },
    h("div", { class: "row" }, h("h2", {}, "Code"), h("span", { class: "end row" }, copyPython, copyCommand, copyLink)),
    h("details", {}, h("summary", {}, "Show the code"), h("div", { class: "stack" }, python, command)),
  );
  return {
    element,
    show(run) {
      python.textContent = run?.python ?? "";
      command.textContent = run?.command ?? "";
      copyPython.disabled = !run?.python;
      copyCommand.disabled = !run?.command;
      command.hidden = !run?.command;
      copyCommand.title = run?.command ? "" : "The command has no baselines";
    },
  };
}

/** Save the values that are shown, with all digits, so that the command has the same results. */
export function saveAsCsv(data) {
  const quoted = (name) => (/[",\n]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name);
  const lines = [data.columns.map(quoted).join(",")];
  for (let row = 0; row < data.n_rows; row++) lines.push(data.values.map((column) => column[row] ?? "").join(","));
  const link = h("a", {
    href: URL.createObjectURL(new Blob([lines.join("\n"), "\n"], { type: "text/csv" })),
    download: `${data.name}.csv`,
  });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
