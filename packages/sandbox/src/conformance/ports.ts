import { request } from "node:http";
import type { Duplex } from "node:stream";
import { describe, expect, test } from "vitest";
import { type Conformance, drain, expectCode, startReady } from "./context.ts";

export function describePorts(c: Conformance): void {
  describe("a port", () => {
    test("answers HTTP over the pipe, request after request", async () => {
      await using sandbox = await c.create({ ports: [3000, 8080] });
      const { exec } = await startReady(sandbox, "serveHttp", ["8080"], { background: true });
      for (const path of ["/", "/a/b?c=d"]) expect(await get(await sandbox.connect(8080), path)).toBe(`path ${path}`);
      expect(
        await Promise.all(["/1", "/2", "/3"].map(async (path) => await get(await sandbox.connect(8080), path))),
      ).toEqual(["path /1", "path /2", "path /3"]);
      await exec.kill();
      await expectCode(sandbox.connect(8080), "connection_refused");
    });

    test("carries any bytes both ways, and an end is an end", async () => {
      await using sandbox = await c.create();
      await startReady(sandbox, "serveEcho", ["5173"], { background: true });
      const pipe = await sandbox.connect(5173);
      const sent = Buffer.alloc(
        1024 * 1024,
        Uint8Array.from({ length: 256 }, (_, i) => i),
      );
      const received = drain<Buffer>(pipe);
      pipe.end(sent);
      expect(Buffer.concat(await received).equals(sent)).toBe(true);
    });

    test("that nothing listens on refuses", async () => {
      await expectCode(c.shared.connect(3000), "connection_refused");
    });

    test("that is none, or that the sandbox does not open, is refused as such", async () => {
      for (const port of [0, -1, 65536, 1.5, Number.NaN, 22]) await expectCode(c.shared.connect(port), "invalid_port");
    });

    if (c.capabilities.sleep && c.capabilities.sleepKeepsProcesses) {
      test("wakes its sandbox, and the server inside goes on", async () => {
        await using sandbox = await c.create();
        await startReady(sandbox, "serveHttp", ["3000"], { background: true });
        await sandbox.sleep();
        expect(await get(await sandbox.connect(3000), "/woken")).toBe("path /woken");
        expect(await sandbox.info()).toMatchObject({ state: "running" });
      });
    }

    if (c.capabilities.previewUrls) {
      test("has one stable address with a token, which a browser reaches", async () => {
        await using sandbox = await c.create();
        await startReady(sandbox, "serveHttp", ["3000"], { background: true });
        const url = await sandbox.previewUrl(3000);
        expect(await sandbox.previewUrl(3000)).toBe(url);
        expect(await browse(url)).toMatchObject({ status: 200, text: expect.stringContaining("path ") });
        expect([401, 403, 404]).toContain((await fetch(new URL("/", url).origin)).status);
        await expectCode(sandbox.previewUrl(70_000), "invalid_port");
      });
    } else {
      test("has no address for a browser", async () => {
        await expectCode(c.shared.previewUrl(3000), "capability_missing");
      });
    }
  });
}

/** As a browser does: follows the way in and keeps the cookies it is given. */
async function browse(url: string): Promise<{ status: number; text: string }> {
  const cookies: string[] = [];
  for (let at = url, hop = 0; ; hop++) {
    const answer = await fetch(at, { redirect: "manual", headers: { cookie: cookies.join("; ") } });
    const next = answer.headers.get("location");
    if (next === null || hop > 4) return { status: answer.status, text: await answer.text() };
    for (const cookie of answer.headers.getSetCookie()) cookies.push(cookie.split(";")[0] ?? "");
    at = new URL(next, at).href;
  }
}

async function get(pipe: Duplex, path: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const call = request(
    { createConnection: () => pipe, path, headers: { host: "sandbox", connection: "close" } },
    (response) => {
      drain<Buffer>(response).then((parts) => resolve(Buffer.concat(parts).toString()), reject);
    },
  );
  call.on("error", reject).end();
  return await promise;
}
