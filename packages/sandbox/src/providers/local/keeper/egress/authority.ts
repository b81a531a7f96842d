import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes, X509Certificate } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { createSecureContext, type SecureContext } from "node:tls";
import { replaceFile } from "../../../../state-files.ts";
import { leafCertificate, rootCertificate } from "./certificate.ts";

export interface CertificateAuthority {
  /** For the sandboxes' trust bundle. */
  readonly caCertificatePem: string;
  /** A key and certificate for the host, made on first use. */
  contextFor(host: string): SecureContext;
}

export interface AuthorityOptions {
  /** Holds key and certificate, mode 0600. */
  readonly file: string;
  readonly now?: () => number;
}

const dayMs = 24 * 60 * 60 * 1000;
const rootDays = 3650;
const leafDays = 30;
/** For clocks that run behind. */
const backdateDays = 1;
/** A certificate that expires sooner is replaced. */
const renewDays = 5;
const cachedLeaves = 512;

/**
 * The authority of one state directory, from its file. Replaces one that is missing, expires soon, does not parse or
 * could have been read by others; sandboxes that trust the old one then need the new certificate.
 */
export async function openCertificateAuthority({
  file,
  now = Date.now,
}: AuthorityOptions): Promise<CertificateAuthority> {
  const { key, certificatePem } = (await readRoot(file, now())) ?? createRoot(file, now());
  const issuer = commonNameOf(certificatePem);
  const leaves = new Map<string, { context: SecureContext; expiresAt: number }>();
  return {
    caCertificatePem: certificatePem,
    contextFor: (host) => {
      const known = leaves.get(host);
      if (known && known.expiresAt - renewDays * dayMs > now()) return known.context;
      const validity = validityFrom(now(), leafDays);
      const leafKey = newKey();
      const cert = leafCertificate(host, leafKey, issuer, key, validity);
      const context = createSecureContext({ key: keyPem(leafKey), cert, minVersion: "TLSv1.2" });
      const [oldest] = leaves.keys();
      if (leaves.size >= cachedLeaves && oldest !== undefined) leaves.delete(oldest);
      leaves.set(host, { context, expiresAt: validity.to.getTime() });
      return context;
    },
  };
}

interface Root {
  readonly key: KeyObject;
  readonly certificatePem: string;
}

async function readRoot(file: string, nowMs: number): Promise<Root | undefined> {
  try {
    const { mode } = await stat(file);
    const pem = await readFile(file, "utf8");
    const certificate = new X509Certificate(pem);
    const key = createPrivateKey(pem);
    const isPrivate = (mode & 0o077) === 0;
    const isFresh = certificate.validToDate.getTime() - renewDays * dayMs > nowMs;
    const isOurs = certificate.ca && certificate.checkPrivateKey(key);
    return isPrivate && isFresh && isOurs ? { key, certificatePem: certificate.toString() } : undefined;
  } catch {
    return undefined;
  }
}

function createRoot(file: string, nowMs: number): Root {
  const key = newKey();
  const name = `Slipway sandbox egress ${randomBytes(4).toString("hex")}`;
  const certificatePem = rootCertificate(name, key, validityFrom(nowMs, rootDays));
  replaceFile(file, `${keyPem(key)}${certificatePem}`, 0o600);
  return { key, certificatePem };
}

function validityFrom(nowMs: number, days: number): { from: Date; to: Date } {
  return { from: new Date(nowMs - backdateDays * dayMs), to: new Date(nowMs + days * dayMs) };
}

function newKey(): KeyObject {
  return generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
}

function keyPem(key: KeyObject): string {
  return key.export({ type: "pkcs8", format: "pem" }).toString();
}

function commonNameOf(pem: string): string {
  return new X509Certificate(pem).subject.replace(/^CN=/, "");
}
