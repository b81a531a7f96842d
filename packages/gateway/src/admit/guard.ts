import { SlipwayError } from "@slipway/contract";
import { asObject, contentParts, type Json } from "../dialects/content.ts";
import type { AgentDialectName } from "../dialects/dialect.ts";
import { agentFunctions, agentTools, choosesAgentTools } from "./agent-tools.ts";

/**
 * Removes or refuses what would reach past the run: programs and searches that run at the endpoint and bypass the
 * sandbox's network policy, state that the endpoint shares between all users of its key, and fields that change the
 * price.
 */
export function guardBody(dialect: AgentDialectName, body: Json): void {
  const parts = [...contentParts(body)];
  for (const field of refusedFields) {
    if (!isEmpty(body[field])) throw refused(`${field} is not available here`);
  }
  for (const [field, count] of [
    ["n", body["n"]],
    ["candidateCount", asObject(body["generationConfig"])["candidateCount"]],
  ] as const) {
    if (!isEmpty(count) && count !== 1) throw refused(`${field} is not available here: ask for one answer`);
  }
  if (!choosesAgentTools(body["tool_choice"]))
    throw refused("tool_choice: only the agent's own tools are available here");
  for (const field of Object.keys(body)) if (!passedFields[dialect].has(field)) delete body[field];
  if (dialect === "responses") guardItems(body);
  if (!isEmpty(body["functions"])) body["functions"] = agentFunctions(listOf("functions", body["functions"]));
  keepFreeEdits(body);
  for (const part of [body, ...parts]) {
    if (!isEmpty(part["tools"])) part["tools"] = agentTools(dialect, listOf("tools", part["tools"]));
    // A long-lived cache has a price that is not in the table.
    delete asObject(part["cache_control"])["ttl"];
  }
  parts.forEach(checkPart);
}

/** Refers to other requests or to state at the endpoint. Dropping it would change the question: refuse it. */
const refusedFields =
  "background previous_response_id conversation container mcp_servers prompt audio cachedContent".split(" ");

/** The fields that limit an answer's length. A limit the endpoint does not read is no limit. */
export const limitFields = {
  anthropic: ["max_tokens"],
  chat: ["max_completion_tokens", "max_tokens"],
  responses: ["max_output_tokens"],
} as const;

/**
 * Fields known to name no other model, price, search or program, and to store nothing at the endpoint. Vendors keep
 * adding fields: drop all others. Google requests are never passed through, only translated.
 */
const passedFields: Readonly<Record<AgentDialectName, ReadonlySet<string>>> = {
  anthropic: new Set([
    ...["model", "messages", "system", "tools", "tool_choice", "stream", "metadata", "cache_control"],
    ...["thinking", "output_config", "output_format", "context_management", "stop_sequences"],
    ...["temperature", "top_p", "top_k", ...limitFields.anthropic],
  ]),
  chat: new Set([
    ...["model", "messages", "tools", "tool_choice", "parallel_tool_calls", "functions", "function_call"],
    ...["stream", "stream_options", "n", "stop", "response_format", "logprobs", "top_logprobs", "logit_bias"],
    ...["temperature", "top_p", "top_k", "min_p", "seed", "frequency_penalty", "presence_penalty"],
    ...["repetition_penalty", "reasoning", "reasoning_effort", "thinking", "enable_thinking", "verbosity"],
    ...["chat_template_kwargs", "user", "metadata", "safety_identifier", "prompt_cache_key", ...limitFields.chat],
  ]),
  responses: new Set([
    ...["model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "max_tool_calls"],
    ...["stream", "stream_options", "include", "text", "reasoning", "truncation", "top_logprobs"],
    ...["temperature", "top_p", "user", "metadata", "safety_identifier", "prompt_cache_key", ...limitFields.responses],
  ]),
  google: new Set(["model", "stream", "contents", "systemInstruction", "tools", "toolConfig", "generationConfig"]),
};

/** An item without a type is either a message or a reference to one that the endpoint stores. */
function guardItems(body: Json): void {
  body["store"] = false;
  for (const field of ["input", "instructions"]) {
    const items = Array.isArray(body[field]) ? body[field].map(asObject) : [];
    if (items.some(({ type, role }) => isEmpty(type) && isEmpty(role))) throw refused(itemItself);
  }
}

/** Compaction is a separate response, which the answer's usage does not count. */
function keepFreeEdits(body: Json): void {
  const { edits } = asObject(body["context_management"]);
  if (!Array.isArray(edits)) delete body["context_management"];
  else
    body["context_management"] = { edits: edits.filter((edit) => String(asObject(edit)["type"]).startsWith("clear_")) };
}

function listOf(field: string, value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw refused(`${field}: expected a list`);
  return value;
}

/** Images and files must be inline: an endpoint that fetches them is a way out of the sandbox. */
function checkPart(part: Json): void {
  if (part["type"] === "item_reference") throw refused(itemItself);
  const sourceType = asObject(part["source"])["type"];
  const isOutside =
    (sourceType !== undefined && !insideSources.has(sourceType)) ||
    !isEmpty(asObject(part["audio"])["id"]) ||
    Object.entries(part).some(([field, value]) => leadsOut(part, field, value));
  if (isOutside) throw refused(outsideContent);
}

function leadsOut(part: Json, field: string, value: unknown): boolean {
  if (keptFields.has(field)) return !isEmpty(value);
  const texts = (Array.isArray(value) ? value : [value]).filter((one) => typeof one === "string");
  if (addressField.test(field)) return texts.some((text) => !text.startsWith("data:"));
  // A document's text may begin with a URL.
  if (!bytesFields.has(field) || (field === "data" && part["type"] === "text")) return false;
  return texts.some((text) => /^\s*\w+:\/\//.test(text));
}

const insideSources: ReadonlySet<unknown> = new Set(["base64", "text", "content"]);
/** Names of content stored at the endpoint. */
const keptFields: ReadonlySet<string> = new Set([
  "file_id",
  "file_ids",
  "container_id",
  "vector_store_ids",
  "fileData",
]);
const addressField = /(^|_)ur[il]s?$|Ur[il]s?$/;
/** Fields in which some vendors also accept a URL. */
const bytesFields: ReadonlySet<string> = new Set(["data", "file_data", "image", "audio", "video"]);
const outsideContent = "images and files by address or id are not available here: send their bytes";
const itemItself = "item_reference is not available here: send the item itself";

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || value === false || (Array.isArray(value) && value.length === 0);
}

function refused(message: string): SlipwayError {
  return new SlipwayError("invalid_request", message);
}
