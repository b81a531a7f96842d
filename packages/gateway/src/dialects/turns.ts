import type { Message, Part } from "./conversation.ts";

/** Makes one message per turn: joins neighbours of the same role and drops empty ones. */
export function mergeTurns(messages: readonly Message[]): Message[] {
  const merged: { role: Message["role"]; parts: Part[] }[] = [];
  for (const { role, parts } of messages) {
    const last = merged.at(-1);
    if (last?.role === role) last.parts.push(...parts);
    else if (parts.length > 0) merged.push({ role, parts: [...parts] });
  }
  return merged;
}

export function joinTexts(texts: readonly string[]): string {
  return texts.filter((text) => text !== "").join("\n\n");
}

export function partsOf<T extends Part["type"]>(parts: readonly Part[], type: T): Extract<Part, { type: T }>[] {
  return parts.filter((part): part is Extract<Part, { type: T }> => part.type === type);
}

export function textsOf(parts: readonly Part[], type: "text" | "thinking" = "text"): string[] {
  return partsOf(parts, type).map(({ text }) => text);
}

/** An image by its address. A `data:` address contains the image. */
export function imageAt(url: string): Part {
  const comma = url.indexOf(",");
  const head = url.slice(0, comma);
  if (!head.startsWith("data:") || !head.endsWith(";base64")) return { type: "image_url", url };
  const [mediaType = ""] = head.slice("data:".length).split(";");
  return { type: "image", mediaType, base64: url.slice(comma + 1) };
}

export function imageAddress(part: Extract<Part, { type: "image" | "image_url" }>): string {
  return part.type === "image" ? `data:${part.mediaType};base64,${part.base64}` : part.url;
}
