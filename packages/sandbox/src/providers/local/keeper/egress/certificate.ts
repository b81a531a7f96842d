import { createHash, createPublicKey, type KeyObject, randomBytes, sign } from "node:crypto";
import {
  bitString,
  explicit,
  implicit,
  integer,
  isTrue,
  objectIdentifier,
  octetString,
  sequence,
  set,
  time,
  utf8String,
} from "./der.ts";

interface Validity {
  readonly from: Date;
  readonly to: Date;
}

const oid = {
  commonName: "2.5.4.3",
  ecdsaWithSha256: "1.2.840.10045.4.3.2",
  subjectKeyId: "2.5.29.14",
  keyUsage: "2.5.29.15",
  subjectAltName: "2.5.29.17",
  basicConstraints: "2.5.29.19",
  nameConstraints: "2.5.29.30",
  authorityKeyId: "2.5.29.35",
  extendedKeyUsage: "2.5.29.37",
  serverAuth: "1.3.6.1.5.5.7.3.1",
} as const;

const generalName = { dns: 2, ip: 7 } as const;
const keyUsageBits = {
  digitalSignature: bitString(Buffer.from([0x80]), 7),
  keyCertSign: bitString(Buffer.from([0x04]), 2),
};
const serverAuth = sequence(objectIdentifier(oid.serverAuth));

/**
 * A root that can only sign server certificates for domain names: no authorities, no addresses. Names cannot be
 * constrained further, because a policy may name any host later.
 */
export function rootCertificate(name: string, key: KeyObject, validity: Validity): string {
  const anyAddress = [4, 16].map((bytes) => sequence(implicit(generalName.ip, Buffer.alloc(bytes * 2))));
  return certificate(name, name, key, key, validity, [
    extension(oid.basicConstraints, true, sequence(isTrue, integer(0))),
    extension(oid.keyUsage, true, keyUsageBits.keyCertSign),
    extension(oid.extendedKeyUsage, false, serverAuth),
    extension(oid.nameConstraints, true, sequence(explicit(1, ...anyAddress))),
    extension(oid.subjectKeyId, false, octetString(keyIdOf(key))),
  ]);
}

/** A server's certificate for exactly one host. */
export function leafCertificate(
  host: string,
  key: KeyObject,
  issuer: string,
  issuerKey: KeyObject,
  validity: Validity,
): string {
  return certificate(`Slipway sandbox egress`, issuer, key, issuerKey, validity, [
    extension(oid.basicConstraints, true, sequence()),
    extension(oid.keyUsage, true, keyUsageBits.digitalSignature),
    extension(oid.extendedKeyUsage, false, serverAuth),
    extension(oid.subjectAltName, false, sequence(implicit(generalName.dns, Buffer.from(host, "latin1")))),
    extension(oid.subjectKeyId, false, octetString(keyIdOf(key))),
    extension(oid.authorityKeyId, false, sequence(implicit(0, keyIdOf(issuerKey)))),
  ]);
}

function certificate(
  subject: string,
  issuer: string,
  key: KeyObject,
  issuerKey: KeyObject,
  { from, to }: Validity,
  extensions: Buffer[],
): string {
  const algorithm = sequence(objectIdentifier(oid.ecdsaWithSha256));
  const toBeSigned = sequence(
    explicit(0, integer(2)),
    integer(serialNumber()),
    algorithm,
    distinguishedName(issuer),
    sequence(time(from), time(to)),
    distinguishedName(subject),
    publicKeyInfo(key),
    explicit(3, sequence(...extensions)),
  );
  const der = sequence(toBeSigned, algorithm, bitString(sign("sha256", toBeSigned, issuerKey)));
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}

function extension(id: string, critical: boolean, value: Buffer): Buffer {
  return sequence(objectIdentifier(id), ...(critical ? [isTrue] : []), octetString(value));
}

function distinguishedName(commonName: string): Buffer {
  return sequence(set(sequence(objectIdentifier(oid.commonName), utf8String(commonName))));
}

/** Positive and of full length. */
function serialNumber(): Buffer {
  const serial = randomBytes(15);
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40;
  return serial;
}

function publicKeyInfo(key: KeyObject): Buffer {
  return createPublicKey(key).export({ type: "spki", format: "der" });
}

function keyIdOf(key: KeyObject): Buffer {
  return createHash("sha256").update(publicKeyInfo(key)).digest().subarray(0, 20);
}
