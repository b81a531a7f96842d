type Schema = Readonly<Record<string, unknown>>;

/** Google's own schemas are JSON schemas with type names in capitals. */
export function readSchema(schema: Schema): Schema {
  return read(schema) as Schema;
}

function read(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(read);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, isType(key, one) ? one.toLowerCase() : read(one)]),
  );
}

const types: ReadonlySet<unknown> = new Set(["STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"]);

/** A property may also be called `type`: its value is an object. */
function isType(key: string, value: unknown): value is string {
  return key === "type" && types.has(value);
}
