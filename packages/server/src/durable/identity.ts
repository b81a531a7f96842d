import { createPrivateKey, createPublicKey, generateKeyPairSync } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** What Restate signs its requests with: who serves them takes no others. */
export interface RequestIdentity {
  readonly privatePem: string;
  /** As Restate writes public keys. */
  readonly publicKey: string;
}

/** The directory's own, made when it has none. */
export async function openIdentity(directory: string): Promise<RequestIdentity> {
  const kept = await readFile(pathOf(directory), "utf8").catch(() => undefined);
  const identity = kept === undefined ? undefined : readIdentity(kept);
  if (identity !== undefined) return identity;
  const { privateKey } = generateKeyPairSync("ed25519");
  const privatePem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  return { privatePem, publicKey: toPublicKey(privatePem) };
}

/** Answers the path. */
export async function writeIdentity(directory: string, { privatePem }: RequestIdentity): Promise<string> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await writeFile(pathOf(directory), privatePem, { mode: 0o600 });
  return pathOf(directory);
}

function pathOf(directory: string): string {
  return join(directory, "identity.pem");
}

/** Undefined: what is there is no such key, for instance because its writing was cut short. */
function readIdentity(privatePem: string): RequestIdentity | undefined {
  try {
    return { privatePem, publicKey: toPublicKey(privatePem) };
  } catch {
    return undefined;
  }
}

function toPublicKey(privatePem: string): string {
  const { kty, crv, x = "" } = createPublicKey(createPrivateKey(privatePem)).export({ format: "jwk" });
  if (kty !== "OKP" || crv !== "Ed25519") throw new TypeError("not an Ed25519 key");
  return `publickeyv1_${base58(Buffer.from(x, "base64url"))}`;
}

const alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

export function base58(bytes: Uint8Array): string {
  let digits = "";
  for (let rest = BigInt(`0x0${Buffer.from(bytes).toString("hex")}`); rest > 0n; rest /= 58n) {
    digits = alphabet[Number(rest % 58n)] + digits;
  }
  const zeros = bytes.findIndex((byte) => byte !== 0);
  return "1".repeat(zeros === -1 ? bytes.length : zeros) + digits;
}
