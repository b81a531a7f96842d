import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Duplex } from "node:stream";
import { SlipwayError } from "@slipway/contract";
import { readExactly } from "../agent/ports/read.ts";

/*
 * How a host and the link program of a sandbox prove to each other that they hold the sandbox's key, before anything else
 * is said on a connection:
 *
 *   sandbox  magic, nonce
 *   host     request (role, holder), nonce, proof of both nonces and the request
 *   sandbox  verdict, proof of both nonces, the request and the verdict
 *
 * Both nonces are fresh, so nothing of an earlier connection can be said again; the two proofs have different labels, so
 * neither side can be made to answer its own challenge. Who fails learns nothing: the connection closes.
 */

export const keyBytes = 32;
const magic = Buffer.from("slipway1");
const nonceBytes = 32;
const proofBytes = 32;
const holderBytes = 16;
const requestBytes = 1 + holderBytes;

/** `control`: the host opens streams. `channel`: the sandbox does, one for each connection of a program inside. */
export type Role = "control" | "channel";
const roles: readonly Role[] = ["control", "channel"];

export interface LinkRequest {
  readonly role: Role;
  /** Whose channel it is: a holder may come again while its earlier connection is not known to be gone. */
  readonly holder: Buffer;
}

const verdicts = ["welcome", "in_use"] as const;
export type Verdict = (typeof verdicts)[number];

export function newHolder(): Buffer {
  return randomBytes(holderBytes);
}

/** The sandbox's side. Undefined when the other one has no key. `decide` is asked only about one that has. */
export async function admit(
  stream: Duplex,
  key: Buffer,
  decide: (request: LinkRequest) => Promise<Verdict>,
): Promise<LinkRequest | undefined> {
  const ours = randomBytes(nonceBytes);
  stream.write(Buffer.concat([magic, ours]));
  const answer = await readExactly(stream, requestBytes + nonceBytes + proofBytes);
  if (answer === undefined) return undefined;
  const [asked, theirs, proof] = parts(answer, requestBytes, nonceBytes);
  const said = Buffer.concat([ours, theirs, asked]);
  const role = roles[asked[0] as number];
  if (!timingSafeEqual(proof, prove(key, "host", said)) || role === undefined) return undefined;
  const request = { role, holder: asked.subarray(1) };
  const verdict = await decide(request);
  const code = Buffer.of(verdicts.indexOf(verdict));
  stream.write(Buffer.concat([code, prove(key, "sandbox", Buffer.concat([said, code]))]));
  return verdict === "welcome" ? request : undefined;
}

/** The host's side. Fails with `channel_in_use`, or with `provider_unavailable` when the other side has no key. */
export async function enter(stream: Duplex, key: Buffer, { role, holder }: LinkRequest): Promise<void> {
  const greeting = await readExactly(stream, magic.length + nonceBytes);
  if (greeting === undefined) throw refused("closed the connection");
  const [name, theirs] = parts(greeting, magic.length, nonceBytes);
  if (!name.equals(magic)) throw refused("is no link of a sandbox");
  const ours = randomBytes(nonceBytes);
  const asked = Buffer.concat([Buffer.of(roles.indexOf(role)), holder]);
  const said = Buffer.concat([theirs, ours, asked]);
  stream.write(Buffer.concat([asked, ours, prove(key, "host", said)]));
  const answer = await readExactly(stream, 1 + proofBytes);
  if (answer === undefined) throw refused("did not accept the key");
  const [code, proof] = parts(answer, 1, proofBytes);
  if (!timingSafeEqual(proof, prove(key, "sandbox", Buffer.concat([said, code])))) throw refused("has another key");
  if (verdicts[code[0] as number] !== "welcome")
    throw new SlipwayError("channel_in_use", "Another process has the sandbox's channel open.");
}

/** What a preview's address carries, and its entrance inside asks for. */
export function previewToken(key: Buffer, port: number): string {
  return prove(key, "preview", Buffer.from(String(port))).toString("base64url");
}

function prove(key: Buffer, label: "host" | "sandbox" | "preview", said: Buffer): Buffer {
  return createHmac("sha256", key).update(`slipway link ${label}\0`).update(said).digest();
}

function refused(what: string): SlipwayError {
  return new SlipwayError("provider_unavailable", `What answers at the sandbox's address ${what}.`);
}

/** The bytes before, between and after two lengths. */
function parts(bytes: Buffer, first: number, second: number): [Buffer, Buffer, Buffer] {
  return [bytes.subarray(0, first), bytes.subarray(first, first + second), bytes.subarray(first + second)];
}
