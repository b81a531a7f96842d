import { promisify } from "node:util";
import { brotliCompress, brotliDecompress, constants } from "node:zlib";
import {
  type BridgeMessage,
  bridgeLimits,
  type OutgoingMessage,
  outgoingMessageSchema,
  SlipwayError,
} from "@slipway/contract";
import { z } from "zod";

const compressFromBytes = 4096;
/** Takes a tenth of the best level's time for most of its gain. */
const quality = 4;
const compress = promisify(brotliCompress);
const decompress = promisify(brotliDecompress);

/** A message as it is stored and sent: text only, its payload compressed where that makes it smaller. */
export interface SealedMessage {
  readonly topic: OutgoingMessage["topic"];
  readonly key: string;
  readonly from: string;
  readonly at: number;
  readonly encoding: "json" | "brotli";
  readonly body: string;
}

const numberedMessageSchema = z.object({
  offset: z.coerce.number().int().min(1),
  topic: z.string(),
  key: z.string(),
  from: z.string(),
  at: z.coerce.number().int(),
  encoding: z.enum(["json", "brotli"]),
  body: z.string(),
});

export async function seal({ topic, key, from, payload }: OutgoingMessage, at: number): Promise<SealedMessage> {
  const json = JSON.stringify(payload);
  const bytes = Buffer.byteLength(json);
  if (bytes > bridgeLimits.maxPayloadBytes) {
    const message = `the payload has ${bytes} bytes; a message may have ${bridgeLimits.maxPayloadBytes}`;
    throw new SlipwayError("too_large", message);
  }
  return { topic, key, from, at, ...(await pack(json, bytes)) };
}

/** A stored text that is no message is a defect. */
export async function unseal(stored: unknown): Promise<BridgeMessage> {
  const { topic, key, from, offset, at, encoding, body } = numberedMessageSchema.parse(stored);
  const json = encoding === "json" ? body : await unpack(body);
  const message = outgoingMessageSchema.parse({ topic, key, from, payload: JSON.parse(json) });
  return Object.freeze({ ...message, offset, at });
}

/** Larger messages do not travel with the news. Readers find them in the log. */
const smallCharacters = 16 * 1024;

export function isSmall({ encoding, body }: SealedMessage): boolean {
  return encoding === "json" && body.length <= smallCharacters;
}

async function pack(json: string, bytes: number): Promise<Pick<SealedMessage, "encoding" | "body">> {
  if (bytes < compressFromBytes) return { encoding: "json", body: json };
  const packed = await compress(json, { params: { [constants.BROTLI_PARAM_QUALITY]: quality } });
  const body = packed.toString("base64");
  return body.length < bytes ? { encoding: "brotli", body } : { encoding: "json", body: json };
}

async function unpack(body: string): Promise<string> {
  const json = await decompress(Buffer.from(body, "base64"), { maxOutputLength: bridgeLimits.maxPayloadBytes });
  return json.toString();
}
