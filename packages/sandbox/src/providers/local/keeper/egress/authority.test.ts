import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, createServer } from "node:tls";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openCertificateAuthority } from "./authority.ts";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "authority-"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const dayMs = 24 * 60 * 60 * 1000;

test("the key's file is closed to others and survives a restart", async () => {
  const file = join(directory, "authority.pem");
  const first = await openCertificateAuthority({ file });
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  const second = await openCertificateAuthority({ file });
  expect(second.caCertificatePem).toBe(first.caCertificatePem);
  expect(first.caCertificatePem).not.toContain("PRIVATE");
});

test.each([
  ["readable by others", (file: string) => chmod(file, 0o644), Date.now()],
  ["cut short", async (file: string) => writeFile(file, (await readFile(file, "utf8")).slice(0, 300)), Date.now()],
  ["expired", async () => undefined, Date.now() + 3649 * dayMs],
])("an authority that is %s is replaced", async (_, spoil, nowMs) => {
  const file = join(directory, "authority.pem");
  const first = await openCertificateAuthority({ file });
  await spoil(file);
  const second = await openCertificateAuthority({ file, now: () => nowMs });
  expect(second.caCertificatePem).not.toBe(first.caCertificatePem);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
});

test("the root signs servers of domain names only", async () => {
  const { caCertificatePem } = await openCertificateAuthority({ file: join(directory, "authority.pem") });
  const root = new X509Certificate(caCertificatePem);
  expect(root.ca).toBe(true);
  expect(root.verify(root.publicKey)).toBe(true);
  expect(root.keyUsage).toEqual(["1.3.6.1.5.5.7.3.1"]);
});

async function handshake(host: string, servername: string): Promise<string> {
  const authority = await openCertificateAuthority({ file: join(directory, "authority.pem") });
  const server = createServer({ SNICallback: (_, done) => done(null, authority.contextFor(host)) }, (socket) =>
    socket.end(),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const socket = connect({ host: "127.0.0.1", port, ca: authority.caCertificatePem, servername });
  try {
    await once(socket, "secureConnect");
    return "accepted";
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? "failed";
  } finally {
    socket.destroy();
    server.close();
  }
}

test("a leaf is accepted for its host and for no other", async () => {
  expect(await handshake("api.example.com", "api.example.com")).toBe("accepted");
  expect(await handshake("api.example.com", "other.example.com")).toBe("ERR_TLS_CERT_ALTNAME_INVALID");
});

test("leaves are made once per host and again before they expire", async () => {
  let nowMs = Date.now();
  const authority = await openCertificateAuthority({ file: join(directory, "authority.pem"), now: () => nowMs });
  const first = authority.contextFor("api.example.com");
  expect(authority.contextFor("api.example.com")).toBe(first);
  expect(authority.contextFor("other.example.com")).not.toBe(first);
  nowMs += 27 * dayMs;
  expect(authority.contextFor("api.example.com")).not.toBe(first);
});
