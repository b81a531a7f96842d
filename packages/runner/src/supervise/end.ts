import { type ClaimedEnd, maxEndCharacters } from "@slipway/contract";
import { cutText } from "../system/text.ts";

/** An end that fits into an event. */
export function claimEnd(reason: ClaimedEnd["reason"], message = ""): ClaimedEnd {
  return { reason, message: cutText(message, maxEndCharacters) };
}
