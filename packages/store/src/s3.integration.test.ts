import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { SlipwayError } from "@slipway/contract";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bytesOf, describeObjectStorage, expectCode } from "./objects/conformance/suite.ts";
import { openS3Storage } from "./objects/s3.ts";
import type { S3Settings } from "./objects/settings.ts";
import { below } from "./objects/storage.ts";
import { type FaultProxy, type Faults, startFaultProxy } from "./testing/fault-proxy.ts";
import { MemoryTree } from "./testing/memory-tree.ts";
import { type S3Server, startS3Server } from "./testing/s3-server.ts";
import { openSlipway } from "./testing/slipway-program.ts";
import { createWorkspace } from "./workspaces/workspaces.ts";

let server: S3Server;
beforeAll(async () => {
  server = await startS3Server();
});
afterAll(async () => await server?.[Symbol.asyncDispose]());

describeObjectStorage("a bucket", async () => await openS3Storage((await server.makeBucket("conformance")).settings));

describe("a bucket that cannot be used", () => {
  const opened = async (change: Partial<S3Settings>) => {
    const { endpoint, keyId, secret } = server;
    const right = { endpoint, region: "us-east-1", keyId, secret, sessionToken: undefined, bucket: "missing" };
    const limits = { connectMs: 2000, answerMs: 2000, stallMs: 2000, tries: 2 };
    await using _ = await openS3Storage({ ...right, ...change }, limits);
  };
  const refusal = async (change: Partial<S3Settings>) => {
    const error = await opened(change).catch((failure: unknown) => failure as SlipwayError);
    expect(error).toBeInstanceOf(SlipwayError);
    return error as SlipwayError;
  };

  test("is refused with the setting that is wrong, and no secret is told", async () => {
    const [missing, key, secret] = await Promise.all([
      refusal({}),
      refusal({ keyId: "nobody" }),
      refusal({ secret: "wrong-secret" }),
    ]);
    for (const error of [missing, key, secret]) expect(error.code).toBe("storage_refused");
    expect(missing.message).toMatch(/^SLIPWAY_STORAGE: .*missing/);
    expect(key.message).toMatch(/^AWS_ACCESS_KEY_ID, /);
    expect(secret.message).toMatch(/^AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY: /);
    expect(JSON.stringify([missing, key, secret])).not.toMatch(/wrong-secret|slipway-test-secret/);
  });

  test("at an address where nobody listens may work later", async () => {
    const listener = createServer().listen(0, "127.0.0.1");
    await once(listener, "listening");
    const { port } = listener.address() as AddressInfo;
    listener.close();
    const error = await refusal({ endpoint: `http://127.0.0.1:${port}` });
    expect(error).toMatchObject({ code: "storage_unavailable", retry: "later" });
  });

  test.each([
    ["lets both of two writers win", { etag: '"x"' }, "storage_unfit"],
    ["answers anything at all with a page", {}, "storage_unavailable"],
  ])("at a server that %s is refused", async (_name, headers, code) => {
    const other = createServer((request, answer) => {
      request.resume();
      answer.writeHead(200, headers).end("<html>hello</html>");
    }).listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    const error = await refusal({ endpoint: `http://127.0.0.1:${port}` });
    other.closeAllConnections();
    other.close();
    expect(error.code).toBe(code);
  });
});

describe("a server with faults", () => {
  let proxy: FaultProxy;
  let settings: S3Settings;
  beforeAll(async () => {
    proxy = await startFaultProxy(server.endpoint);
    settings = { ...(await server.makeBucket("faults")).settings, endpoint: proxy.endpoint };
  });
  afterAll(async () => await proxy?.[Symbol.asyncDispose]());
  const limits = { connectMs: 1000, answerMs: 1500, stallMs: 500, tries: 3 };
  const large = Buffer.from(Array.from({ length: 9_000_000 }, (_, index) => (index * 7) % 253));

  const every = (count: number, fault: ReturnType<Faults>): Faults => {
    return ({ number }) => (number % count === 0 ? fault : "none");
  };
  test.each<[string, Faults]>([
    ["is slow", () => "slow"],
    ["fails every third call", every(3, "error")],
    ["never answers every tenth call", every(10, "hang")],
    ["closes in the middle of every fourth request", every(4, "cut-request")],
    ["stops in the middle of every third answer", every(3, "cut-answer")],
    ["answers every fifth call with garbage", every(5, "garbage")],
    ["is gone after twenty calls", ({ number }) => (number > 20 ? "error" : "none")],
    ["answers with garbage after twenty calls", ({ number }) => (number > 20 ? "garbage" : "none")],
    [
      "forgets everything that it is asked to copy",
      ({ path, method }) => (method === "PUT" && /30/.test(path) ? "hang" : "none"),
    ],
  ])("that %s costs no version and shows no half one", async (name, faults) => {
    await using storage = await openS3Storage(settings, limits);
    const workspace = createWorkspace(below(storage, name.replaceAll(" ", "-")));
    const tree = new MemoryTree().put("large", large);
    for (let index = 0; index < 40; index++) tree.put(`d/${index}`, `first ${index}`);
    const trees = new Map([[(await workspace.sync(tree, "/w")).version, tree.content()]]);
    for (let index = 0; index < 40; index += 2) tree.put(`d/${index}`, `second ${index}`);
    proxy.set(faults);
    const synced = await workspace.sync(tree, "/w").catch((error: unknown) => error as Error);
    const back = new MemoryTree();
    const hydrated = await workspace.hydrate(back, "/w").catch((error: unknown) => error as Error);
    proxy.set(() => "none");
    for (const outcome of [synced, hydrated]) {
      if (outcome instanceof Error)
        expect(outcome).toMatchObject({ code: expect.stringMatching(/^storage_(unav|dam)/) });
    }
    if (!(synced instanceof Error)) trees.set(synced.version, tree.content());
    const versions = await workspace.versions();
    expect(versions.length).toBeGreaterThanOrEqual(trees.size);
    for (const { version } of versions) {
      const whole = new MemoryTree();
      await workspace.hydrate(whole, "/w", { version });
      expect(whole.content()).toEqual(trees.get(version) ?? tree.content());
    }
    if (!(hydrated instanceof Error)) expect([...trees.values(), tree.content()]).toContainEqual(back.content());
  });

  test("continues an object from the byte where an answer broke off", async () => {
    await using storage = await openS3Storage(settings, limits);
    await storage.put("large", large);
    let cuts = 3;
    proxy.set(({ method }) => (method === "GET" && cuts-- > 0 ? "cut-answer" : "none"));
    expect((await bytesOf(storage, "large")).equals(large)).toBe(true);
    expect(proxy.calls.length).toBeGreaterThan(3);
    proxy.set(({ method }) => (method === "GET" ? "hang" : "none"));
    await expectCode(bytesOf(storage, "large"), "storage_unavailable");
    proxy.set(() => "none");
  });
});

describe("the command line", () => {
  const open = async (bucket: string) => {
    const { variables } = await server.makeBucket(bucket);
    return openSlipway({ ...variables, SLIPWAY_STORAGE: `s3://${bucket}/a b/root` });
  };
  /** Names, types, modes, targets and bytes. */
  const listing =
    "find . -mindepth 1 -printf '%p %y %m %l\\0' | sort -z | tr '\\0' '\\n'; find . -type f -print0 | sort -z | xargs -0 sha256sum";

  test("brings files there and back, byte for byte, and shows the credentials to nobody inside", async () => {
    await using slipway = await open("there-and-back");
    const made = (await slipway.run("sandbox", "create", "--workspace", "app", "--volume", "ann/shop")).trim();
    const make =
      "i=0; while [ $i -lt 600 ]; do mkdir -p d$((i % 7)); echo $i > d$((i % 7))/f$i; i=$((i+1)); done; " +
      "printf x > \"a\nb\"; printf x > 'ü 文 +%?#&'; head -c 3000000 /dev/urandom > large; chmod 750 large; " +
      "ln -s /etc/passwd link; mkdir empty; mkfifo pipe; echo v > /projects/ann/shop/v";
    await slipway.run("sandbox", "exec", made, "--", "sh", "-c", make);
    const before = await slipway.run("sandbox", "exec", made, "--", "sh", "-c", `rm pipe; ${listing}`);
    const synced = JSON.parse(await slipway.run("sandbox", "rm", "--sync", "--json", made));
    expect(synced.receipts).toHaveLength(1);
    const again = (await slipway.run("sandbox", "create", "--workspace", "app", "--volume", "ann/shop")).trim();
    expect(await slipway.run("sandbox", "exec", again, "--", "sh", "-c", listing)).toBe(before);
    expect(await slipway.run("sandbox", "exec", again, "--", "cat", "/projects/ann/shop/v")).toBe("v");
    const inside = await slipway.run(
      "sandbox",
      "exec",
      again,
      "--",
      "sh",
      "-c",
      "env; cat /proc/[0-9]*/environ 2> /dev/null; true",
    );
    expect(inside).not.toContain(server.secret);
    expect(await slipway.run("sandbox", "info", "--json", again)).not.toContain(server.secret);
    const records = spawnSync("grep", ["-rlF", server.secret, slipway.directory], { encoding: "utf8" }).stdout;
    expect(records).toBe("");
  });

  test("leaves a whole version or none when a sync is killed at any moment", async () => {
    await using slipway = await open("killed");
    const id = (await slipway.run("sandbox", "create", "--workspace", "app")).trim();
    const write = (round: string) =>
      slipway.run("sandbox", "exec", id, "--", "sh", "-c", `for i in $(seq 60); do echo ${round} > f$((i * 2)); done`);
    await slipway.run("sandbox", "exec", id, "--", "sh", "-c", "for i in $(seq 120); do echo first > f$i; done");
    const startedAt = performance.now();
    await slipway.run("storage", "sync", id);
    const syncMs = performance.now() - startedAt;
    for (const [round, part] of fc.sample(fc.double({ min: 0.2, max: 1.1, noNaN: true }), 20).entries()) {
      await write(`round-${round}`);
      const sync = slipway.start("storage", "sync", id);
      const ended = once(sync, "close");
      await Promise.race([sleep(part * syncMs), ended]);
      sync.kill("SIGKILL");
      await ended;
    }
    const versions = (await slipway.run("storage", "versions", "app")).split("\n");
    for (const version of versions) {
      await slipway.run("storage", "get", "app", version, "--version", version);
      const directory = join(slipway.directory, version);
      const names = readdirSync(directory);
      expect(names).toHaveLength(120);
      const contentOf = (odd: number) =>
        new Set(
          names
            .filter((name) => Number(name.slice(1)) % 2 === odd)
            .map((name) => readFileSync(join(directory, name), "utf8")),
        );
      expect([...contentOf(1)]).toEqual(["first\n"]);
      expect(contentOf(0).size).toBe(1);
    }
    await write("last");
    expect(await slipway.run("storage", "sync", id)).not.toBe(versions[0]);
  });
});
