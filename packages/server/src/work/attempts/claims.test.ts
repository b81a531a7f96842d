import { newId } from "@slipway/contract";
import type { WorkingBuild } from "@slipway/engine";
import { openBridge } from "@slipway/store/bridge";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { stillClock } from "../../testing/world/place.ts";
import { openWorld } from "../../testing/world.ts";
import { claimMs, freeClaims, keepClaims } from "./claims.ts";

const build = { id: newId("bld") } as WorkingBuild;
beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] }));
afterEach(() => void vi.useRealTimers());

test("an attempt's claims last exactly as long as it works", async () => {
  const clock = stillClock(0);
  await using opened = await openWorld({ clock, store: {} });
  const bridge = await openBridge({ database: opened.database, clock });
  const world = { bridge, build, warn: expect.unreachable };
  const claim = (owner: string) => bridge.claim(build.id, { paths: ["src/a.ts"], owner, leaseMs: claimMs });
  const end = new AbortController();
  await claim("one");
  keepClaims(world, "one", end.signal);
  for (let thirds = 0; thirds < 12; thirds++) {
    clock.pass(claimMs / 3);
    vi.advanceTimersByTime(claimMs / 3);
    await vi.waitFor(async () =>
      expect(await bridge.claims(build.id)).toMatchObject([{ expiresAt: clock.now() + claimMs }]),
    );
  }
  expect(await claim("two")).toMatchObject({ granted: false });

  end.abort();
  vi.advanceTimersByTime(claimMs);
  clock.pass(claimMs);
  expect(await claim("two")).toMatchObject({ granted: true });
  await freeClaims(world, "one");
  expect(await bridge.claims(build.id)).toMatchObject([{ owner: "two" }]);
  await freeClaims(world, "two");
  expect(await bridge.claims(build.id)).toEqual([]);
  await bridge.close();
});
