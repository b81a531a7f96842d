import { SlipwayError } from "@slipway/contract";
import { asObject, contentParts, type Json } from "../dialects/content.ts";
import type { AgentDialectName } from "../dialects/dialect.ts";
import { agentFunctions, agentTools, choosesAgentTools } from "./agent-tools.ts";

/**
 * Takes out of a request, or refuses, what would reach past the run: programs and searches at the endpoint, which lead
 * around the sandbox's network policy; what the endpoint keeps for all who have its key, other runs among them; and what
 * changes the price.
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
    // A cache that is kept for long has another price than the table's.
    delete asObject(part["cache_control"])["ttl"];
  }
  parts.forEach(checkPart);
}

/** What leads to another request's words or to what others keep at the endpoint: without it, it would be another question. */
const refusedFields =
  "background previous_response_id conversation container mcp_servers prompt audio cachedContent".split(" ");

/** Where a dialect says how long an answer may be. A limit that the endpoint does not read is none. */
export const limitFields = {
  anthropic: ["max_tokens"],
  chat: ["max_completion_tokens", "max_tokens"],
  responses: ["max_output_tokens"],
} as const;

/**
 * What is known to name no other model, price, search or program, and to keep nothing at the endpoint. Vendors add fields all
 * the time: all others are left out. Google's are not passed on as they are, but said in the words of an endpoint.
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

/** An item without a type is a message, or names one that the endpoint keeps. */
function guardItems(body: Json): void {
  body["store"] = false;
  for (const field of ["input", "instructions"]) {
    const items = Array.isArray(body[field]) ? body[field].map(asObject) : [];
    if (items.some(({ type, role }) => isEmpty(type) && isEmpty(role))) throw refused(itemItself);
  }
}

/** Compaction is a response of its own, which the count of the answer leaves out. */
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

/** Images and files come inside the request: an endpoint that fetched them would be a way out of the sandbox. */
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
  // The words of a document may begin with an address.
  if (!bytesFields.has(field) || (field === "data" && part["type"] === "text")) return false;
  return texts.some((text) => /^\s*\w+:\/\//.test(text));
}

const insideSources: ReadonlySet<unknown> = new Set(["base64", "text", "content"]);
/** What is kept at the endpoint, by its name there. */
const keptFields: ReadonlySet<string> = new Set([
  "file_id",
  "file_ids",
  "container_id",
  "vector_store_ids",
  "fileData",
]);
const addressField = /(^|_)ur[il]s?$|Ur[il]s?$/;
/** In which vendors read an address, too. */
const bytesFields: ReadonlySet<string> = new Set(["data", "file_data", "image", "audio", "video"]);
const outsideContent = "images and files by address or id are not available here: send their bytes";
const itemItself = "item_reference is not available here: send the item itself";

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || value === false || (Array.isArray(value) && value.length === 0);
}

function refused(message: string): SlipwayError {
  return new SlipwayError("invalid_request", message);
}
