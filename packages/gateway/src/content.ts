/** A request's body as it came, of any dialect. */
export type Json = Record<string, unknown>;

/** All messages or items of a body, their parts, and the parts inside tool results. */
export function* contentParts(body: Json): Generator<Json> {
  for (const message of partsOf(body["messages"] ?? body["input"])) {
    yield message;
    // `output` is what a tool has put out, in the responses dialect.
    for (const part of [...partsOf(message["content"]), ...partsOf(message["output"])]) {
      yield part;
      yield* partsOf(part["content"]);
    }
  }
}

export function partsOf(content: unknown): Json[] {
  return Array.isArray(content) ? content.map(asObject) : [];
}

/** How many characters of the body are an image. */
export function imageCharacters(part: Json): number {
  const source = asObject(part["source"]);
  if (part["type"] === "image" && typeof source["data"] === "string") return source["data"].length;
  const url = asObject(part["image_url"])["url"] ?? part["image_url"];
  return typeof url === "string" && url.startsWith("data:image/") ? url.length : 0;
}

export function asObject(value: unknown): Json {
  return typeof value === "object" && value !== null ? (value as Json) : {};
}
