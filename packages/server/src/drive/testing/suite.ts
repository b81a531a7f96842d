import { type BuildId, newId, SlipwayError } from "@slipway/contract";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import type { Drive, DriveParts, TakeTurn } from "../drive.ts";
import { anHour, over, scriptedTurns } from "./scripted-turns.ts";

export interface DriveSubject {
  open(takeTurn: TakeTurn, parts?: Partial<DriveParts>): Promise<Drive>;
  /** Until nothing drives the build. */
  idle(build: BuildId): Promise<void>;
}

/** What every drive does. */
export function describeDrive({ open, idle }: DriveSubject): void {
  let build: BuildId;
  beforeEach(() => {
    build = newId("bld");
  });

  describe("a build", () => {
    test("has a turn at once, then when its bell rings, and none after it is over", async () => {
      const { takeTurn, called, calls } = scriptedTurns((_, count) => (count < 3 ? anHour : over));
      await using drive = await open(takeTurn, { name: "the-server" });
      await drive.drive(build, 7);
      const first = await called(1);
      expect(first).toEqual({ build, holder: "the-server", generation: 7, bell: expect.stringMatching(/^\w/) });
      await drive.ring(first.bell);
      const second = await called(2);
      await drive.ring(second.bell);
      const { bell } = await called(3);
      await idle(build);
      for (const late of [first.bell, second.bell, bell]) await drive.ring(late);
      await idle(build);
      expect(calls).toHaveLength(3);
    });

    test("hears a bell that rings during its turn", async () => {
      const { takeTurn, called } = scriptedTurns(async ({ bell }, count) => {
        if (count === 1) await drive.ring(bell);
        return count === 1 ? anHour : over;
      });
      await using drive = await open(takeTurn);
      await drive.drive(build, 1);
      await called(2);
    });

    test("has a turn when its time has come, without a bell", async () => {
      const { takeTurn, called } = scriptedTurns((_, count) => (count < 3 ? { over: false, waitMs: 10 } : over));
      await using drive = await open(takeTurn);
      await drive.drive(build, 1);
      expect((await called(3)).generation).toBe(1);
    });

    test("is not woken by unknown and malformed bells", async () => {
      const { takeTurn, called, calls } = scriptedTurns((_, count) => (count < 2 ? anHour : over));
      await using drive = await open(takeTurn);
      await drive.drive(build, 1);
      const { bell } = await called(1);
      const others = [`${bell.slice(0, -6)}AAAAAA`, "sign_1nonsense", "../../deployments", "x".repeat(4_000), " ", ""];
      for (const other of others) await drive.ring(other);
      expect(calls).toHaveLength(1);
      await drive.ring(bell);
      await called(2);
    });

    test("has a turn that failed again, soon and in the same generation", async () => {
      const warnings: string[] = [];
      const { takeTurn, called } = scriptedTurns((_, count) => {
        if (count < 4) throw new SlipwayError("database_busy", "later");
        return over;
      });
      await using drive = await open(takeTurn, { warn: (message) => void warnings.push(message) });
      await drive.drive(build, 1);
      const [first, , , fourth] = [await called(1), await called(2), await called(3), await called(4)];
      expect(fourth).toEqual(first);
      expect(warnings.join()).toContain("later");
    });

    test.each(["lease_lost", "build_not_found"] as const)("is let go of without a word by %s", async (code) => {
      const warnings: string[] = [];
      const { takeTurn, called, calls } = scriptedTurns(() => {
        throw new SlipwayError(code, "not yours");
      });
      await using drive = await open(takeTurn, { warn: (message) => void warnings.push(message) });
      await drive.drive(build, 1);
      await called(1);
      await idle(build);
      expect({ calls: calls.length, warnings }).toEqual({ calls: 1, warnings: [] });
    });
  });

  describe("a build that is driven anew", () => {
    test("has turns in the new generation only", async () => {
      const { takeTurn, called, calls } = scriptedTurns((_, count) => (count < 3 ? anHour : over));
      await using drive = await open(takeTurn);
      await drive.drive(build, 1);
      await called(1);
      await drive.drive(build, 2);
      const { bell, generation } = await called(2);
      expect(generation).toBe(2);
      await drive.ring(bell);
      expect((await called(3)).generation).toBe(2);
      await idle(build);
      expect(calls).toHaveLength(3);
    });

    test("does not wait for a turn that hangs, and has no more turns in its generation", async () => {
      const gate = Promise.withResolvers<void>();
      const { takeTurn, called, calls } = scriptedTurns(async (_, count) => {
        if (count > 1) return over;
        await gate.promise;
        return { over: false, waitMs: 0 };
      });
      await using drive = await open(takeTurn);
      await drive.drive(build, 1);
      await called(1);
      await drive.drive(build, 2);
      expect(await called(2)).toMatchObject({ generation: 2 });
      gate.resolve();
      await idle(build);
      expect(calls).toHaveLength(2);
    });
  });

  test("a drive that is closed lets its turn end first, and takes no other", async () => {
    const gate = Promise.withResolvers<void>();
    const { takeTurn, called, calls } = scriptedTurns(async () => {
      await gate.promise;
      return { over: false, waitMs: 0 };
    });
    const drive = await open(takeTurn);
    await drive.drive(build, 1);
    await called(1);
    // The time that a turn is given at the end does not pass.
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    let isClosed = false;
    const closing = drive[Symbol.asyncDispose]().then(() => {
      isClosed = true;
    });
    await new Promise(setImmediate);
    expect(isClosed).toBe(false);
    gate.resolve();
    await closing;
    expect(calls).toHaveLength(1);
  });
}
