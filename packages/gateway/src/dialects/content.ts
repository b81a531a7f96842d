import { SlipwayError } from "@slipway/contract";

/** A request's body as received, in any dialect. */
export type Json = Record<string, unknown>;

/**
 * Yields everything that a body says to a model: its messages or items, and every object in them. Fails with
 * `invalid_request` if any part of the body is nested too deeply, so later code need not fear for its stack.
 */
export function* contentParts(body: Json): Generator<Json> {
  requireShallow(body);
  const waiting = contentFields.map((field) => body[field]);
  while (waiting.length > 0) {
    const value = waiting.pop();
    if (!isNested(value)) continue;
    if (!Array.isArray(value)) yield value;
    for (const [field, below] of Object.entries(value)) if (!dataFields.has(field)) waiting.push(below);
  }
}

const contentFields = ["messages", "input", "system", "instructions", "contents", "systemInstruction"];
/** Tool definitions, inputs and outputs are the agent's own data, whatever they look like. */
const dataFields: ReadonlySet<string> = new Set(["tools", "input", "arguments", "args", "response"]);

/** Of objects and lists. Agents send a few dozen levels at most. */
const maxDepth = 100;

function requireShallow(body: Json): void {
  let level: Json[] = [body];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > maxDepth) throw new SlipwayError("invalid_request", "the body is nested too deeply");
    level = level.flatMap((value) => Object.values(value).filter(isNested));
  }
}

/** An object or a list. */
function isNested(value: unknown): value is Json {
  return typeof value === "object" && value !== null;
}

/** How many characters of the part are an image. */
export function imageCharacters(part: Json): number {
  const source = asObject(part["source"]);
  if (part["type"] === "image" && typeof source["data"] === "string") return source["data"].length;
  const { mimeType, data } = asObject(part["inlineData"]);
  if (typeof data === "string" && String(mimeType).startsWith("image/")) return data.length;
  const url = asObject(part["image_url"])["url"] ?? part["image_url"];
  return typeof url === "string" && url.startsWith("data:image/") ? url.length : 0;
}

export function asObject(value: unknown): Json {
  return isNested(value) ? value : {};
}

/** Whether the part is a file whose pages are read. Its tokens have little to do with its bytes. */
export function isDocument(part: Json): boolean {
  const { file_data } = { ...asObject(part["file"]), ...part };
  return (
    typeof file_data === "string" || (part["type"] === "document" && asObject(part["source"])["type"] === "base64")
  );
}
