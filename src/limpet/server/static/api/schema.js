// JSON schemas as people read them: a type in few words, an example of what is sent or comes back.

/** Follows references within the document. */
export function resolve(schema, root) {
  while (schema?.$ref)
    schema = schema.$ref
      .slice(2)
      .split("/")
      .reduce((at, name) => at?.[name.replace(/~1/g, "/").replace(/~0/g, "~")], root);
  return schema ?? {};
}

const HUGE = 2 ** 53; // a limit that is none to people

const NAMED = {
  stream: "boiler",
  key: "boiler",
  note: "The valve was opened.",
  message: "up by 5.3 standard deviations",
  variables: ["temperature"],
};

const choices = (schema) => schema.anyOf ?? schema.oneOf;

/** "integer ≥ 1", "list of text", "text or null". */
export function typeWords(schema, root, depth = 0) {
  schema = resolve(schema, root);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  const several =
    choices(schema) ?? (Array.isArray(schema.type) ? schema.type.map((type) => ({ ...schema, type })) : null);
  if (several) return [...new Set(several.map((one) => typeWords(one, root, depth)))].join(" or ");
  if (schema.type === "array") return depth > 2 ? "list" : `list of ${typeWords(schema.items ?? {}, root, depth + 1)}`;
  const words =
    { string: "text", boolean: "true or false", object: schema.title ?? "object", null: "null" }[schema.type] ??
    schema.type ??
    "anything";
  const [least, most] = [schema.minimum ?? schema.exclusiveMinimum, schema.maximum ?? schema.exclusiveMaximum];
  return `${words}${least !== undefined && least > -HUGE ? ` ≥ ${least}` : ""}${most !== undefined && most < HUGE ? ` ≤ ${most}` : ""}`;
}

/** A value that fits the schema: the given example, or one made up from its parts. */
export function example(schema, root, depth = 0) {
  schema = resolve(schema, root);
  const given = schema.example ?? schema.examples?.[0] ?? schema.const ?? schema.enum?.[0];
  if (given !== undefined) return given;
  if (schema.default !== undefined && schema.default !== null) return schema.default;
  if (depth > 5) return null;
  const several = choices(schema);
  if (several) return example(several.find((one) => resolve(one, root).type !== "null") ?? several[0], root, depth + 1);
  if (schema.allOf) return Object.assign({}, ...schema.allOf.map((one) => example(one, root, depth + 1)));
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  if (type === "object" || schema.properties)
    return Object.fromEntries(
      shownOf(schema).map(([name, one]) => [name, NAMED[name] ?? example(one, root, depth + 1)]),
    );
  if (type === "array")
    return schema.prefixItems
      ? schema.prefixItems.map((one) => example(one, root, depth + 1))
      : [example(schema.items ?? {}, root, depth + 1)];
  return { string: "text", integer: schema.minimum ?? 0, number: 1.5, boolean: true }[type] ?? null;
}

/** What is needed of an object, and one more thing that can be said. */
function shownOf({ properties = {}, required = [] }) {
  const all = Object.entries(properties);
  const needed = all.filter(([name]) => required.includes(name));
  const more = all.find(([name]) => !required.includes(name));
  return more ? [...needed, more] : needed;
}

/** Examples of a schema: one of each kind where there are several. */
export function examples(schema, root) {
  const kinds = choices(resolve(schema, root))?.filter((one) => resolve(one, root).type !== "null") ?? [schema];
  return kinds.map((one) => example(one, root));
}

/** JSON with short lists and objects on one line. */
export function pretty(value, indent = "") {
  const flat = JSON.stringify(value);
  if (flat === undefined || value === null || typeof value !== "object" || flat.length + indent.length < 72)
    return (flat ?? "null").replace(/([,:])(?=["[{\d\-tfn])/g, "$1 ");
  const inner = `${indent}  `;
  if (Array.isArray(value)) return `[\n${value.map((one) => inner + pretty(one, inner)).join(",\n")}\n${indent}]`;
  return `{\n${Object.entries(value)
    .map(([name, one]) => `${inner}${JSON.stringify(name)}: ${pretty(one, inner)}`)
    .join(",\n")}\n${indent}}`;
}
