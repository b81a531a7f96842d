import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newId } from "@slipway/contract";
import type { WorkingBuild } from "@slipway/engine";
import { openDatabase } from "@slipway/store";
import { openBridge } from "@slipway/store/bridge";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { claimMs, freeClaims, keepClaims } from "./claims.ts";

const build = { id: newId("bld") } as WorkingBuild;
beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] }));
afterEach(() => void vi.useRealTimers());

test("an attempt's claims last exactly as long as it works", async () => {
  const directory = mkdtempSync(join(tmpdir(), "slipway-claims-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  await using database = openDatabase({ url: `file:${join(directory, "bridge.db")}` });
  let now = 0;
  const bridge = await openBridge({ database, clock: { now: () => now } });
  const world = { bridge, build, warn: expect.unreachable };
  const claim = (owner: string) => bridge.claim(build.id, { paths: ["src/a.ts"], owner, leaseMs: claimMs });
  const end = new AbortController();
  await claim("one");
  keepClaims(world, "one", end.signal);
  for (let thirds = 0; thirds < 12; thirds++) {
    now += claimMs / 3;
    vi.advanceTimersByTime(claimMs / 3);
    await vi.waitFor(async () => expect(await bridge.claims(build.id)).toMatchObject([{ expiresAt: now + claimMs }]));
  }
  expect(await claim("two")).toMatchObject({ granted: false });

  end.abort();
  vi.advanceTimersByTime(claimMs);
  now += claimMs;
  expect(await claim("two")).toMatchObject({ granted: true });
  await freeClaims(world, "one");
  expect(await bridge.claims(build.id)).toMatchObject([{ owner: "two" }]);
  await freeClaims(world, "two");
  expect(await bridge.claims(build.id)).toEqual([]);
  await bridge.close();
});
