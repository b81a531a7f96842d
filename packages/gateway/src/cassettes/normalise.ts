import { createHash } from "node:crypto";
import type { UpstreamRequest } from "../upstream.ts";

/** What two runs of the same scenario ask alike, as lines of JSON. */
export function normalise({ endpoint, dialect, body }: Pick<UpstreamRequest, "endpoint" | "dialect" | "body">): string {
  const json = JSON.parse(body) as Record<string, unknown>;
  const kept = {
    provider: endpoint.provider,
    dialect,
    model: json["model"],
    stream: json["stream"] === true,
    system: json["system"] ?? json["instructions"],
    messages: json["messages"] ?? json["input"],
    // Descriptions and schemas of tools change with every version of an agent.
    tools: Array.isArray(json["tools"]) ? json["tools"].map(toolName) : [],
    format: json["output_config"] ?? json["response_format"] ?? json["text"],
  };
  return scrub(JSON.stringify(kept, null, 1));
}

export function keyOf(normalised: string): string {
  return createHash("sha256").update(normalised).digest("hex").slice(0, 24);
}

/** In the order in which they apply: a working directory may hold a date or a uuid. */
const variable: readonly (readonly [RegExp, string])[] = [
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, "<uuid>"],
  [/\b[0-9a-f]{32,}\b/g, "<hex>"],
  [/\b(toolu|msg|call|req|fc|ctc|rs|resp|chatcmpl|run|ses|prt)_[A-Za-z0-9]{6,}/g, "$1_<id>"],
  [/\b\d{4}-\d\d-\d\d(T[\d:.]+(Z|[+-]\d\d:?\d\d)?)?/g, "<date>"],
  [/\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? [A-Z][a-z]{2,8} \d{1,2},? \d{4}\b/g, "<date>"],
  [/\b(cc_version|cch)=[\w.]+/g, "$1=<version>"],
  [/\b(OS Version: )[^\\\n"]+/g, "$1<version>"],
  [/\bv?\d+\.\d+\.\d+(-[\w.]+)?\b/g, "<version>"],
];

const workingDirectory = /(?:[Ww]orking directory: |<cwd>)(\/[^\\\n"<]+)/;

function scrub(text: string): string {
  const directory = workingDirectory.exec(text)?.[1];
  const placed = directory === undefined ? text : text.replaceAll(directory, "<cwd>");
  return variable.reduce((scrubbed, [pattern, name]) => scrubbed.replace(pattern, name), placed);
}

function toolName(tool: {
  readonly name?: unknown;
  readonly type?: unknown;
  readonly function?: { readonly name?: unknown };
}): unknown {
  return tool.name ?? tool.function?.name ?? tool.type;
}
