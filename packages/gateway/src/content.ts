import { SlipwayError } from "@slipway/contract";

/** A request's body as it came, of any dialect. */
export type Json = Record<string, unknown>;

/** All messages or items of a body, and the parts that they hold, however deep: in tool results, in documents. */
export function* contentParts(body: Json): Generator<Json> {
  for (const field of ["messages", "input", "system", "contents", "systemInstruction"])
    yield* partsBelow(body[field], 1);
}

/** `output` is what a tool has put out, in the responses dialect; a document's `source` may hold parts. Google's are `parts`. */
const nestedFields = ["content", "output", "source", "parts", "functionResponse"];
const maxDepth = 16;

function* partsBelow(content: unknown, depth: number): Generator<Json> {
  if (depth > maxDepth) throw new SlipwayError("invalid_request", "the content is nested too deeply");
  for (const part of partsOf(content)) {
    yield part;
    for (const field of nestedFields) yield* partsBelow(part[field], depth + 1);
  }
}

function partsOf(content: unknown): Json[] {
  if (Array.isArray(content)) return content.map(asObject);
  return typeof content === "object" && content !== null ? [content as Json] : [];
}

/** How many characters of the body are an image. */
export function imageCharacters(part: Json): number {
  const source = asObject(part["source"]);
  if (part["type"] === "image" && typeof source["data"] === "string") return source["data"].length;
  const { mimeType, data } = asObject(part["inlineData"]);
  if (typeof data === "string" && String(mimeType).startsWith("image/")) return data.length;
  const url = asObject(part["image_url"])["url"] ?? part["image_url"];
  return typeof url === "string" && url.startsWith("data:image/") ? url.length : 0;
}

export function asObject(value: unknown): Json {
  return typeof value === "object" && value !== null ? (value as Json) : {};
}

/** Whether it is a file whose pages are read: what they come to has little to do with its bytes. */
export function isDocument(part: Json): boolean {
  const { file_data } = { ...asObject(part["file"]), ...part };
  return (
    typeof file_data === "string" || (part["type"] === "document" && asObject(part["source"])["type"] === "base64")
  );
}
