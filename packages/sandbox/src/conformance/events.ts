import { newId, type SandboxEvent, type SandboxId } from "@slipway/contract";
import { describe, expect, test } from "vitest";
import type { SandboxProvider } from "../provider.ts";
import { type Conformance, eventually, expectCode } from "./context.ts";

export function describeEvents(c: Conformance): void {
  describe("events", () => {
    test("tell each change of state in order, each from where the last one led", async () => {
      const sandbox = await c.create();
      if (c.capabilities.sleep) {
        await sandbox.sleep();
        await sandbox.wake();
      }
      if (c.capabilities.stopStart) {
        await sandbox.stop();
        await sandbox.start();
      }
      await sandbox.destroy();
      const events = await eventsOf(c, sandbox.id);
      let state: string | null = null;
      for (const event of events) {
        if (event.type !== "sandbox.state_changed") continue;
        expect(event.from).toBe(state);
        state = event.to;
      }
      expect(state).toBe("running");
      expect(events.at(-1)).toMatchObject({ type: "sandbox.destroyed", reason: "requested" });
    });

    test("are numbered without a gap, and go on from any number", async () => {
      await (await c.create()).destroy();
      const all = await kept(c);
      expect(all.length).toBeGreaterThan(2);
      const first = all[0]?.sequence ?? 0;
      expect(all.map(({ sequence }) => sequence)).toEqual(all.map((_, i) => first + i));
      // What a provider far away tells may have happened before what was told of another sandbox.
      for (const events of Map.groupBy(all, ({ sandbox }) => sandbox).values())
        expect(events.map(({ at }) => at)).toEqual(events.map(({ at }) => at).toSorted((one, next) => one - next));
      const half = all[Math.floor(all.length / 2)] as SandboxEvent;
      const rest = await kept(c, { after: half.sequence });
      expect(rest.slice(0, all.length)).toEqual(all.filter(({ sequence }) => sequence > half.sequence));
    });

    test("that are not followed end behind the last one, also where there is none", async () => {
      await using sandbox = await c.create();
      const all = await kept(c);
      expect(all).toContainEqual(expect.objectContaining({ sandbox: sandbox.id, to: "running" }));
      expect(await kept(c, { sandbox: newId("sbx") })).toEqual([]);
      const last = all.at(-1)?.sequence ?? 0;
      expect((await kept(c, { after: last })).every(({ sequence }) => sequence > last)).toBe(true);
    });

    test("that come while one listens are told at once", async () => {
      const last = (await kept(c)).at(-1)?.sequence ?? 0;
      const controller = new AbortController();
      const seen: SandboxEvent[] = [];
      const listening = listen(c.provider, { after: last, signal: controller.signal }, seen);
      await using sandbox = await c.create();
      await eventually(() => {
        expect(seen).toContainEqual(expect.objectContaining({ sandbox: sandbox.id, to: "running" }));
      });
      controller.abort();
      await listening;
      expect(seen[0]?.sequence).toBe(last + 1);
    });

    test("of a snapshot name it", async () => {
      await using sandbox = await c.create();
      if (!c.capabilities.snapshotWhileRunning) await sandbox.stop();
      const snapshot = await sandbox.snapshot();
      expect(await eventsOf(c, sandbox.id)).toContainEqual(
        expect.objectContaining({ type: "snapshot.created", snapshot: snapshot.id, checkpoint: false }),
      );
      await c.provider.snapshots.delete(snapshot.id);
    });
  });
}

/** All kept events of a sandbox so far. */
export async function eventsOf(c: Conformance, sandbox: SandboxId): Promise<SandboxEvent[]> {
  const events = await kept(c, { sandbox });
  expect(events.every((event) => event.sandbox === sandbox)).toBe(true);
  return events;
}

async function kept(c: Conformance, options: { after?: number; sandbox?: SandboxId } = {}): Promise<SandboxEvent[]> {
  return await Array.fromAsync(c.provider.events({ ...options, follow: false }));
}

/** A listener's end by its signal may be an end or the code `aborted`. */
async function listen(
  provider: SandboxProvider,
  options: Parameters<SandboxProvider["events"]>[0],
  seen: SandboxEvent[],
): Promise<void> {
  try {
    for await (const event of provider.events(options)) seen.push(event);
  } catch (error) {
    await expectCode(Promise.reject(error), "aborted");
  }
}
