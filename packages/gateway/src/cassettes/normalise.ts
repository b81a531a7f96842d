import { createHash } from "node:crypto";
import type { UpstreamRequest } from "../send/upstream.ts";

/** What two runs of the same scenario have in common in their requests, as lines of JSON. */
export function normalise({ endpoint, dialect, body }: Pick<UpstreamRequest, "endpoint" | "dialect" | "body">): string {
  const json = JSON.parse(body.toString("utf8")) as Record<string, unknown>;
  const kept = {
    provider: endpoint.provider,
    dialect,
    model: json["model"],
    stream: json["stream"] === true,
    system: json["system"] ?? json["instructions"],
    messages: json["messages"] ?? json["input"],
    // Descriptions and schemas of tools change with every agent version.
    tools: Array.isArray(json["tools"]) ? json["tools"].map(toolName) : [],
    format: json["output_config"] ?? json["response_format"] ?? json["text"],
  };
  const directory = workingDirectory.exec(JSON.stringify(kept))?.[1];
  const scrub = (_: string, value: unknown): unknown => {
    if (isToolResult(value)) return scrubAll(value);
    if (typeof value !== "string") return value;
    return replace(directory === undefined ? value : value.replaceAll(directory, "<cwd>"), variable);
  };
  return JSON.stringify(kept, scrub, 1);
}

export function keyOf(normalised: string): string {
  return createHash("sha256").update(normalised).digest("hex").slice(0, 24);
}

type Patterns = readonly (readonly [RegExp, string])[];

/** Applied in this order: a working directory may contain a date or a uuid. */
const variable: Patterns = [
  [/(?<=\b|_)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, "<uuid>"],
  [/\b[0-9a-f]{32,}\b/g, "<hex>"],
  [/\b(toolu|msg|call|req|fc|ctc|rs|resp|chatcmpl|run|ses|prt)_[A-Za-z0-9]{6,}/g, "$1_<id>"],
  // The home directories of a run's agents.
  [/(\/slipway-run\/)[0-9a-f]{16}\b/g, "$1<id>"],
  [/\b\d{4}-\d\d-\d\d([T ]\d\d:[\d:.]+(Z| ?[+-]\d\d:?\d\d)?)?/g, "<date>"],
  [/\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? [A-Z][a-z]{2,8} \d{1,2},? \d{4}\b/g, "<date>"],
  [/\b(cc_version|cch)=[\w.]+/g, "$1=<version>"],
  [/\b(OS Version: )[^\n"]+/g, "$1<version>"],
  [/\bv?\d+\.\d+\.\d+(-[\w.]+)?\b/g, "<version>"],
];

/**
 * Applied to tool results only: in a prompt, `(5s)` is an instruction. Keep whatever is not clearly a duration or a
 * commit: otherwise two different requests would share an answer.
 */
const measured: Patterns = [
  [/\b(duration_ms:? |Wall time: )\d+(\.\d+)?/g, "$1<duration>"],
  // Codex. Its token count includes the durations in the output.
  [/^(Chunk ID: )[0-9a-f]{6}$/gm, "$1<id>"],
  [/^(Original token count: )\d+$/gm, "$1<count>"],
  [/\(\d+(\.\d+)? ?m?s\)/g, "(<duration>)"],
  // git log and date.
  [/\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d( [A-Z]{3,4})? \d{4}( [+-]\d{4})?/g, "<date>"],
  // ls -l.
  [/^([-bcdlps][-rwxsStT]{9}.*? )[A-Z][a-z]{2} +\d{1,2} +(\d\d:\d\d|\d{4}) /gm, "$1<date> "],
  // git commit, git merge, git reset, and git log --oneline. A lone number or word could be anything.
  [/^(\[[\w./-]+( HEAD| \(root-commit\))? )[0-9a-f]{7,12}\]/gm, "$1<commit>]"],
  [/^(Updating )[0-9a-f]{7,12}\.\.[0-9a-f]{7,12}$/gm, "$1<commit>"],
  [/^(Merge: )[0-9a-f]{7,12} [0-9a-f]{7,12}$/gm, "$1<commit>"],
  [/^(HEAD is now at )[0-9a-f]{7,12} /gm, "$1<commit> "],
  [/^(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,12} /gm, "<commit> "],
];

const workingDirectory = /(?:[Ww]orking directory: |<cwd>)(\/[^\\\n"<]+)/;

function replace(text: string, patterns: Patterns): string {
  return patterns.reduce((scrubbed, [pattern, name]) => scrubbed.replace(pattern, name), text);
}

/** In any dialect. */
function isToolResult(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  const { type, role } = value as { readonly type?: unknown; readonly role?: unknown };
  return role === "tool" || type === "tool_result" || (typeof type === "string" && type.endsWith("_call_output"));
}

function scrubAll(result: object): unknown {
  return JSON.parse(JSON.stringify(result), (_, value) =>
    typeof value === "string" ? replace(value, measured) : value,
  );
}

function toolName(tool: {
  readonly name?: unknown;
  readonly type?: unknown;
  readonly function?: { readonly name?: unknown };
}): unknown {
  return tool.name ?? tool.function?.name ?? tool.type;
}
