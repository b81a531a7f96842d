import { SlipwayError } from "@slipway/contract";
import { asObject, contentParts, type Json } from "./content.ts";
import type { AgentDialectName } from "./dialects/dialect.ts";

/**
 * Takes out of a request, or refuses, what would reach past the run: programs and searches at the endpoint, which lead
 * around the sandbox's network policy; what the endpoint keeps for all who have its key, other runs among them; and what
 * changes the price.
 */
export function guardBody(dialect: AgentDialectName, body: Json): void {
  for (const field of droppedFields) delete body[field];
  if (dialect === "responses") body["store"] = false;
  for (const field of refusedFields) {
    if (!isEmpty(body[field])) throw refused(`${field} is not available here`);
  }
  if (!isEmpty(body["n"]) && body["n"] !== 1) throw refused("n is not available here: ask for one answer");
  if (dialect === "google") guardGoogle(body);
  dropUnknown(dialect, body);
  for (const part of [body, ...contentParts(body)]) {
    if (Array.isArray(part["tools"])) part["tools"] = agentTools(part["tools"]);
    dropLongCache(part);
    checkPart(part);
  }
}

const droppedFields = [
  "service_tier",
  "speed",
  "inference_geo",
  "web_search_options",
  "store",
  "prediction",
  "modalities",
  "fallbacks",
];
const refusedFields =
  "background previous_response_id conversation container mcp_servers prompt audio cachedContent".split(" ");

/** Where a dialect says how long an answer may be. A limit that the endpoint does not read is none. */
export const limitFields = {
  anthropic: ["max_tokens"],
  chat: ["max_completion_tokens", "max_tokens"],
  responses: ["max_output_tokens"],
} as const;

/**
 * Many vendors' endpoints speak chat, and fields of their own name other models, other prices or searches: only what is
 * known to do none of it passes.
 */
const chatFields = new Set([
  ...["model", "messages", "tools", "tool_choice", "parallel_tool_calls", "functions", "function_call"],
  ...["stream", "stream_options", "n", "stop", "response_format", "logprobs", "top_logprobs", "logit_bias"],
  ...["temperature", "top_p", "top_k", "min_p", "seed", "frequency_penalty", "presence_penalty", "repetition_penalty"],
  ...["reasoning", "reasoning_effort", "thinking", "enable_thinking", "chat_template_kwargs", "verbosity"],
  ...["user", "metadata", "safety_identifier", "prompt_cache_key", ...limitFields.chat],
]);

const allLimitFields = Object.values(limitFields).flat();

function dropUnknown(dialect: AgentDialectName, body: Json): void {
  const known: readonly string[] = dialect === "google" ? [] : limitFields[dialect];
  for (const field of allLimitFields) if (!known.includes(field)) delete body[field];
  if (dialect !== "chat") return;
  for (const field of Object.keys(body)) if (!chatFields.has(field)) delete body[field];
}

/** A cache that is kept for long has another price than the table's. */
function dropLongCache(part: Json): void {
  delete asObject(part["cache_control"])["ttl"];
}

/** Tools of any other field run at the endpoint. */
function guardGoogle(body: Json): void {
  const { candidateCount } = asObject(body["generationConfig"]);
  if (!isEmpty(candidateCount) && candidateCount !== 1) {
    throw refused("candidateCount is not available here: ask for one answer");
  }
  if (!Array.isArray(body["tools"])) return;
  body["tools"] = body["tools"].map((tool) => ({ functionDeclarations: asObject(tool)["functionDeclarations"] }));
}

/** Tools whose calls come back to the agent. Any other one runs at the endpoint. */
const agentTypes = /^(function|custom|local_shell|apply_patch|namespace|(bash|text_editor|computer|memory)_\d{8})$/;

function agentTools(tools: readonly unknown[]): unknown[] {
  return tools.filter((tool) => {
    const known = asObject(tool);
    const { type, tools: grouped } = known;
    if (Array.isArray(grouped)) known["tools"] = agentTools(grouped);
    dropLongCache(known);
    return type === undefined || type === null || (typeof type === "string" && agentTypes.test(type));
  });
}

/** Images and files come inside the request: an endpoint that fetched them would be a way out of the sandbox. */
function checkPart(part: Json): void {
  if (part["type"] === "item_reference") throw refused("item_reference is not available here: send the item itself");
  const sourceType = asObject(part["source"])["type"];
  if (sourceType !== undefined && !insideSources.has(sourceType)) throw refused(outsideContent);
  if (!isEmpty(part["fileData"])) throw refused(outsideContent);
  const file = asObject(part["file"]);
  for (const field of addressFields) {
    const url = asObject(part[field])["url"] ?? part[field];
    if (typeof url === "string" && !url.startsWith("data:")) throw refused(outsideContent);
  }
  for (const { file_id, file_data } of [part, file]) {
    if (!isEmpty(file_id) || (!isEmpty(file_data) && /^\s*\w+:\/\//.test(String(file_data))))
      throw refused(outsideContent);
  }
}

const insideSources: ReadonlySet<unknown> = new Set(["base64", "text", "content"]);
const addressFields = ["image_url", "file_url", "video_url", "audio_url"];
const outsideContent = "images and files by address or id are not available here: send their bytes";

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || value === false || (Array.isArray(value) && value.length === 0);
}

function refused(message: string): SlipwayError {
  return new SlipwayError("invalid_request", message);
}
