import { SlipwayError } from "@slipway/contract";
import { asObject, contentParts, type Json, partsOf } from "./content.ts";
import type { DialectName } from "./dialects/dialect.ts";

/**
 * Takes out of a request, or refuses, what would reach past the run: programs and searches at the endpoint, which lead
 * around the sandbox's network policy; what the endpoint keeps for all who have its key, other runs among them; and what
 * changes the price.
 */
export function guardBody(dialect: DialectName, body: Json): void {
  for (const field of droppedFields) delete body[field];
  if (dialect === "responses") body["store"] = false;
  for (const field of refusedFields) {
    if (!isEmpty(body[field])) throw refused(`${field} is not available here`);
  }
  if (!isEmpty(body["n"]) && body["n"] !== 1) throw refused("n is not available here: ask for one answer");
  if (Array.isArray(body["tools"])) body["tools"] = body["tools"].filter((tool) => runsAtAgent(tool));
  for (const part of contentParts(body)) {
    checkPart(part);
    dropLongCache(part);
  }
  for (const part of [...partsOf(body["system"]), ...partsOf(body["tools"])]) dropLongCache(part);
}

const droppedFields = ["service_tier", "speed", "inference_geo", "web_search_options", "store"];
const refusedFields = "background previous_response_id conversation container mcp_servers prompt audio".split(" ");

/** A cache that is kept for long has another price than the table's. */
function dropLongCache(part: Json): void {
  delete asObject(part["cache_control"])["ttl"];
}

/** Tools whose calls come back to the agent. Any other one runs at the endpoint. */
const agentTools = /^(function|custom|local_shell|apply_patch|namespace|(bash|text_editor|computer|memory)_\d{8})$/;

function runsAtAgent(tool: unknown): boolean {
  const type = asObject(tool)["type"];
  return type === undefined || type === null || (typeof type === "string" && agentTools.test(type));
}

/** Images and files come inside the request: an endpoint that fetched them would be a way out of the sandbox. */
function checkPart(part: Json): void {
  if (part["type"] === "item_reference") throw refused("item_reference is not available here: send the item itself");
  const sourceType = asObject(part["source"])["type"];
  if (sourceType === "url" || sourceType === "file") throw refused(outsideContent);
  const url = asObject(part["image_url"])["url"] ?? part["image_url"] ?? part["file_url"];
  if (typeof url === "string" && !url.startsWith("data:")) throw refused(outsideContent);
  if (!isEmpty(part["file_id"]) || !isEmpty(asObject(part["file"])["file_id"])) throw refused(outsideContent);
}

const outsideContent = "images and files by address or id are not available here: send their bytes";

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || value === false || (Array.isArray(value) && value.length === 0);
}

function refused(message: string): SlipwayError {
  return new SlipwayError("invalid_request", message);
}
