/** Values in JSON by their fields: `name`, `owner.name`, `items[].name`, `[].name`. */
export interface FieldValue {
  readonly field: string;
  readonly value: string | number | boolean;
}

/** All values that a field has; in lists, those of each entry. */
export function valuesAt(json: unknown, field: string): unknown[] {
  return field
    .replaceAll("[]", ".[]")
    .split(".")
    .filter((part) => part !== "")
    .reduce<unknown[]>((found, part) => found.flatMap((one) => valuesOf(one, part)), [json]);
}

function valuesOf(json: unknown, part: string): unknown[] {
  if (part === "[]") return Array.isArray(json) ? json : [];
  if (typeof json !== "object" || json === null || !Object.hasOwn(json, part)) return [];
  return [(json as Record<string, unknown>)[part]];
}

/** The JSON that has these values. A list that they name has one entry for all of them. */
export function withFields(values: readonly FieldValue[]): unknown {
  let whole: unknown;
  for (const { field, value } of values) {
    const parts = field
      .replaceAll("[]", ".[]")
      .split(".")
      .filter((part) => part !== "");
    whole = put(whole, parts, value);
  }
  return whole ?? {};
}

function put(json: unknown, [part, ...rest]: readonly string[], value: unknown): unknown {
  if (part === undefined) return value;
  if (part === "[]") return [put(Array.isArray(json) ? json[0] : undefined, rest, value)];
  const object = typeof json === "object" && json !== null ? (json as Record<string, unknown>) : {};
  return { ...object, [part]: put(object[part], rest, value) };
}

/** As people compare: without case, spaces around and the difference between 2 and "2". */
export function isSame(found: unknown, wanted: FieldValue["value"]): boolean {
  return isScalar(found) && plain(found) === plain(wanted);
}

export function isScalar(value: unknown): value is FieldValue["value"] {
  return ["string", "number", "boolean"].includes(typeof value);
}

function plain(value: FieldValue["value"]): string {
  return String(value).toLowerCase().replace(/\s+/g, " ").trim();
}
