// The API as a reference to read, made from /openapi.json: endpoints by group, each with a command to copy and, for GET, to try.

import { api, bar, copy, h, tell } from "../common.js";
import { example, examples, pretty, resolve, typeWords } from "./schema.js";
import { tryIt } from "./try.js";

const METHODS = ["get", "post", "put", "patch", "delete"];
const main = document.getElementById("main");

async function start() {
  bar("api");
  const root = await api("/openapi.json");
  const { needed } = await api("/session").catch(() => ({ needed: false }));
  const groups = grouped(root);
  main.append(
    h("nav", { class: "contents", "aria-label": "Endpoints" }, contents(groups)),
    h(
      "div",
      { class: "reference stack" },
      h("h1", {}, root.info?.title ?? "API", h("span", { class: "soft version" }, root.info?.version ?? "")),
      prose(root.info?.description),
      h(
        "p",
        { class: "soft" },
        "The same for programs: ",
        h("a", { href: "/openapi.json" }, "openapi.json"),
        needed ? ". Calls need the header Authorization: Bearer and the token of this server." : ".",
      ),
      [...groups].map(([name, endpoints]) => group(name, endpoints, root, needed)),
    ),
  );
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

/** Endpoints by their first tag, in the order of the tags where the document has one. */
function grouped(root) {
  const groups = new Map((root.tags ?? []).map(({ name }) => [name, []]));
  for (const [path, methods] of Object.entries(root.paths ?? {})) {
    for (const method of METHODS) {
      const operation = methods[method];
      if (!operation) continue;
      const name = operation.tags?.[0] ?? "general";
      if (!groups.has(name)) groups.set(name, []);
      groups.get(name).push({ path, method, operation, id: `${method}${path}`.replace(/[^a-z0-9]+/gi, "-") });
    }
  }
  for (const [name, endpoints] of groups) if (!endpoints.length) groups.delete(name);
  return groups;
}

function contents(groups) {
  return [...groups]
    .map(([name, endpoints]) => [
      h("h2", {}, name),
      h(
        "ul",
        {},
        endpoints.map(({ method, path, id }) =>
          h("li", {}, h("a", { href: `#${id}` }, h("span", { class: `method ${method}` }, method), broken(path))),
        ),
      ),
    ])
    .flat();
}

/** A path that may be broken at its slashes. */
function broken(path) {
  return h(
    "span",
    { class: "path" },
    path.split(/(?=\/)/).flatMap((part) => [h("wbr"), part]),
  );
}

function group(name, endpoints, root, needed) {
  const about = (root.tags ?? []).find((tag) => tag.name === name)?.description;
  return h(
    "section",
    { class: "stack" },
    h("h2", { class: "group" }, name),
    prose(about),
    endpoints.map((endpoint) => card(endpoint, root, needed)),
  );
}

function card({ path, method, operation, id }, root, needed) {
  const parameters = (operation.parameters ?? []).map((one) => resolve(one, root)).filter((one) => one.in !== "cookie");
  const body = bodyOf(operation, root);
  return h(
    "article",
    { class: "card endpoint", id },
    h("h3", {}, h("span", { class: `method ${method}` }, method), broken(path)),
    named(operation) ? h("p", { class: "lead" }, operation.summary) : null,
    prose(operation.description),
    parameters.length ? table(parameters, root) : null,
    body
      ? [h("h4", {}, "Body ", h("span", { class: "soft" }, body.words)), h("pre", { tabIndex: 0 }, body.text)]
      : null,
    h("h4", {}, "Call"),
    line(curl(path, method, parameters, body, needed)),
    answers(operation, root),
    method === "get" && !operation.responses?.["200"]?.content?.["text/event-stream"] && !path.endsWith("/events")
      ? tryIt(path, parameters)
      : null,
  );
}

/** Whether the summary is more than the name of a function in other letters. */
function named({ summary, operationId, description }) {
  return summary && !(description && operationId?.startsWith(summary.toLowerCase().replace(/ /g, "_")));
}

/** Paragraphs of plain text; what stands between backticks is code. */
function prose(text) {
  return (text ?? "")
    .split(/\n\s*\n/)
    .filter((part) => part.trim())
    .map((part) =>
      h(
        "p",
        {},
        part
          .trim()
          .split(/`+([^`]+)`+/)
          .map((piece, i) => (i % 2 ? h("code", {}, piece) : piece.replace(/\*\*/g, ""))),
      ),
    );
}

function bodyOf(operation, root) {
  const content = operation.requestBody ? (resolve(operation.requestBody, root).content ?? {}) : {};
  const [type, one] = Object.entries(content)[0] ?? [];
  if (!type) return null;
  if (!type.includes("json")) return { type, words: type, text: "…", value: null };
  const given =
    one.example !== undefined ? [one.example] : Object.values(one.examples ?? {}).map((other) => other.value);
  const all = given.length ? given : examples(one.schema, root);
  return {
    type,
    words: all.length > 1 ? "one of these" : "",
    text: all.map((value) => pretty(value)).join("\n"),
    value: all[0],
  };
}

function table(parameters, root) {
  const rows = parameters.map((one) => {
    const schema = resolve(one.schema ?? {}, root);
    const usual =
      schema.default !== undefined && schema.default !== null && schema.default !== ""
        ? [" · usually ", h("code", {}, String(schema.default))]
        : [];
    return h(
      "tr",
      {},
      h("td", {}, h("code", {}, one.name), one.required ? h("span", { class: "soft" }, " needed") : null),
      h(
        "td",
        { class: "soft" },
        `${typeWords(one.schema ?? {}, root)}`,
        ...usual,
        one.in === "header" ? " · header" : "",
      ),
      h("td", {}, one.description ?? schema.description ?? ""),
    );
  });
  return h(
    "div",
    { class: "wide" },
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, h("th", {}, "Parameter"), h("th", {}, "What it is"), h("th", {}, "What it does"))),
      h("tbody", {}, rows),
    ),
  );
}

const quoted = (text) => `'${text.replace(/'/g, "'\\''")}'`;

function curl(path, method, parameters, body, needed) {
  const filled = path.replace(/\{([^}]+)\}/g, (_, name) =>
    example(parameters.find((one) => one.name === name.split(":")[0])?.schema ?? {}, {}) === "text" ? "boiler" : "1",
  );
  const parts = ["curl"];
  if (path.endsWith("/events")) parts.push("-N");
  if (method !== "get") parts.push(`-X ${method.toUpperCase()}`);
  parts.push(quoted(location.origin + filled));
  if (needed) parts.push('-H "Authorization: Bearer $LIMPET_TOKEN"');
  if (body)
    parts.push(
      `-H ${quoted(`Content-Type: ${body.type}`)}`,
      body.value === null ? "--data-binary @file" : `-d ${quoted(JSON.stringify(body.value))}`,
    );
  return parts.join(" ");
}

function line(text) {
  return h(
    "div",
    { class: "line" },
    h("pre", { tabIndex: 0 }, text),
    h("button", { type: "button", class: "small", "aria-label": `Copy: ${text}`, onclick: () => copy(text) }, "Copy"),
  );
}

function answers(operation, root) {
  const all = Object.entries(operation.responses ?? {}).map(([status, one]) => [status, resolve(one, root)]);
  const shown = ([status, { description, content }]) => {
    const [type, one] = Object.entries(content ?? {})[0] ?? [];
    const value = type?.includes("json")
      ? (one.example ?? Object.values(one.examples ?? {})[0]?.value ?? example(one.schema ?? {}, root))
      : null;
    return [
      h(
        "p",
        { class: "answer" },
        h("code", { class: status < "400" ? "well" : "ill" }, status),
        ` ${description ?? ""}`,
      ),
      status < "400" && value !== null ? h("pre", { tabIndex: 0 }, pretty(value)) : null,
    ];
  };
  return all.length
    ? h(
        "details",
        {},
        h("summary", {}, "Answers ", h("span", { class: "soft" }, all.map(([status]) => status).join(" · "))),
        ...all.flatMap(shown).filter(Boolean),
      )
    : null;
}

start().catch(tell);
