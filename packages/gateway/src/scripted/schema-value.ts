type Schema = Readonly<Record<string, unknown>>;

const maxDepth = 32;
/** A small schema can describe an endless value. */
const maxValues = 10_000;

interface Walk {
  readonly root: Schema;
  valuesLeft: number;
}

/** Returns the plainest value that fits a JSON schema, always the same. Supports neither `allOf` nor `pattern`. */
export function valueForSchema(schema: Schema): unknown {
  return valueFor(schema, { root: schema, valuesLeft: maxValues }, 0);
}

function valueFor(node: unknown, walk: Walk, depth: number): unknown {
  if (!isSchema(node) || depth > maxDepth || walk.valuesLeft-- <= 0) return null;
  if ("const" in node) return node["const"];
  if ("default" in node) return node["default"];
  if (Array.isArray(node["enum"])) return node["enum"][0];
  if (typeof node["$ref"] === "string") return valueFor(resolve(node["$ref"], walk.root), walk, depth + 1);
  for (const keyword of ["anyOf", "oneOf"]) {
    const choices = node[keyword];
    if (Array.isArray(choices)) return valueFor(choices[0], walk, depth + 1);
  }
  switch (typeOf(node)) {
    case "object":
      return objectFor(node, walk, depth);
    case "array":
      return arrayFor(node, walk, depth);
    case "string":
      return stringFor(node);
    case "number":
    case "integer":
      return numberFor(node);
    case "boolean":
      return false;
    default:
      return null;
  }
}

function objectFor(node: Schema, walk: Walk, depth: number): Record<string, unknown> {
  const properties = isSchema(node["properties"]) ? node["properties"] : {};
  const required = Array.isArray(node["required"]) ? node["required"].map(String) : [];
  return Object.fromEntries(required.map((name) => [name, valueFor(properties[name], walk, depth + 1)]));
}

function arrayFor(node: Schema, walk: Walk, depth: number): unknown[] {
  const fixed = Array.isArray(node["prefixItems"]) ? node["prefixItems"] : [];
  const values = fixed.map((item) => valueFor(item, walk, depth + 1));
  const length = Math.min(numberOf(node["minItems"]) ?? values.length, 100);
  while (values.length < length) values.push(valueFor(node["items"], walk, depth + 1));
  return values;
}

const formats: Readonly<Record<string, string>> = {
  "date-time": "2000-01-01T00:00:00Z",
  date: "2000-01-01",
  time: "00:00:00Z",
  email: "someone@example.com",
  uri: "https://example.com/",
  uuid: "00000000-0000-4000-8000-000000000000",
};

function stringFor(node: Schema): string {
  const formatted = formats[String(node["format"])];
  if (formatted !== undefined) return formatted;
  const least = Math.min(numberOf(node["minLength"]) ?? 0, 10_000);
  return "A small task".slice(0, numberOf(node["maxLength"])).padEnd(least, ".");
}

function numberFor(node: Schema): number {
  const above = numberOf(node["exclusiveMinimum"]);
  const least = numberOf(node["minimum"]) ?? (above === undefined ? undefined : Math.floor(above) + 1);
  const most = numberOf(node["maximum"]) ?? Number.POSITIVE_INFINITY;
  return Math.min(least ?? 0, most);
}

function typeOf(node: Schema): string {
  const type = Array.isArray(node["type"]) ? node["type"][0] : node["type"];
  if (typeof type === "string") return type;
  return "properties" in node ? "object" : "null";
}

/** Resolves a reference within the document. Others resolve to nothing. */
function resolve(reference: string, root: Schema): unknown {
  if (!reference.startsWith("#")) return undefined;
  let node: unknown = root;
  for (const step of reference.slice(1).split("/").filter(Boolean)) {
    node = isSchema(node) ? node[step.replaceAll("~1", "/").replaceAll("~0", "~")] : undefined;
  }
  return node;
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
