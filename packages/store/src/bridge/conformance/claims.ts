import { type BuildId, bridgeLimits, type Claim } from "@slipway/contract";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { newBuild, type Subject } from "./subject.ts";

const leaseMs = 60_000;

export function describeClaims(subject: Subject): void {
  describe("a claim", () => {
    test("is granted to one of many who ask at once", async () => {
      const { bridge, other } = subject();
      const build = newBuild();
      const answers = await Promise.all(
        Array.from({ length: 16 }, (_, n) =>
          (n % 2 === 0 ? bridge : other).claim(build, { paths: ["src/a.ts"], owner: `sbx_${n}`, leaseMs }),
        ),
      );
      const granted = answers.flatMap((answer) => (answer.granted ? answer.claims : []));
      expect(granted).toHaveLength(1);
      for (const answer of answers) if (!answer.granted) expect(answer.held).toEqual(granted);
      expect(await other.claims(build)).toEqual(granted);
    });

    test("is for all paths or for none", async () => {
      const { bridge, other } = subject();
      const build = newBuild();
      await bridge.claim(build, { paths: ["b"], owner: "one", leaseMs });
      const answer = await other.claim(build, { paths: ["a", "b", "c"], owner: "two", leaseMs });
      expect(answer).toMatchObject({ granted: false, held: [{ path: "b", owner: "one" }] });
      expect((await bridge.claims(build)).map(({ path }) => path)).toEqual(["b"]);
      const paths = Array.from({ length: bridgeLimits.maxClaimPaths }, (_, n) => `many/${n}`);
      const many = await other.claim(build, { paths: [...paths.slice(1), "many/1"], owner: "two", leaseMs });
      expect(many.granted && many.claims.length).toBe(bridgeLimits.maxClaimPaths - 1);
    });

    test("that has run out is free, and its token worth nothing", async () => {
      const { bridge, other, advance } = subject();
      const build = newBuild();
      const first = await claimOne(bridge, build, "one");
      advance(leaseMs);
      expect(await bridge.claims(build)).toEqual([]);
      expect(await bridge.renew(build, { path: "a", token: first.token, leaseMs })).toBeUndefined();
      const second = await claimOne(other, build, "two");
      expect(second.token).toBeGreaterThan(first.token);
      expect(await bridge.renew(build, { path: "a", token: first.token, leaseMs })).toBeUndefined();
      expect(await bridge.release(build, { path: "a", token: first.token })).toBe(false);
      expect(await bridge.claims(build)).toEqual([second]);
    });

    test("that is released is free, and its path's tokens rise on", async () => {
      const { bridge, other } = subject();
      const build = newBuild();
      const first = await claimOne(bridge, build, "one");
      expect(await other.release(build, { path: "a", token: first.token })).toBe(true);
      expect(await other.release(build, { path: "a", token: first.token })).toBe(false);
      expect((await claimOne(other, build, "two")).token).toBe(first.token + 1);
    });

    test("of its own owner is given anew under a higher token, and the old token is late", async () => {
      const { bridge } = subject();
      const build = newBuild();
      const first = await claimOne(bridge, build, "one");
      const second = await claimOne(bridge, build, "one");
      expect(second.token).toBe(first.token + 1);
      expect(await bridge.renew(build, { path: "a", token: first.token, leaseMs })).toBeUndefined();
      expect(await bridge.renew(build, { path: "a", token: second.token, leaseMs })).toMatchObject(second);
    });

    test("follows its rules over any history", async () => {
      const { bridge, other, advance } = subject();
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
          const build = newBuild();
          const model = createModel();
          for (const { type, path, owner, token, ms, second } of steps) {
            const side = second ? other : bridge;
            if (type === "advance") {
              advance(ms);
              model.advance(ms);
            } else if (type === "claim") {
              const answer = await side.claim(build, { paths: [path], owner, leaseMs: ms });
              expect(answer.granted).toBe(model.claim(path, owner, ms));
              const [claim] = answer.granted ? answer.claims : answer.held;
              expect(claim).toMatchObject(model.holder(path) ?? {});
            } else if (type === "renew") {
              const renewed = await side.renew(build, { path, token, leaseMs: ms });
              expect(renewed !== undefined).toBe(model.move(path, token, ms));
            } else {
              expect(await side.release(build, { path, token })).toBe(model.move(path, token, undefined));
            }
            const held = (await side.claims(build)).map(({ path, owner, token }) => ({ path, owner, token }));
            expect(held).toEqual(model.held());
          }
        }),
        { numRuns: 20 },
      );
    });
  });
}

async function claimOne(bridge: ReturnType<Subject>["bridge"], build: BuildId, owner: string): Promise<Claim> {
  const answer = await bridge.claim(build, { paths: ["a"], owner, leaseMs });
  const [claim] = answer.granted ? answer.claims : [];
  if (claim === undefined) throw new Error(`${owner} was not granted a`);
  return claim;
}

const step = fc.record({
  type: fc.constantFrom("claim", "claim", "renew", "release", "advance"),
  path: fc.constantFrom("a", "b"),
  owner: fc.constantFrom("one", "two", "three"),
  token: fc.integer({ min: 1, max: 4 }),
  ms: fc.constantFrom(1000, 5000, 20_000),
  second: fc.boolean(),
});

/** The rules in their simplest form. */
function createModel() {
  const rows = new Map<string, { owner: string; token: number; endsAt: number }>();
  let nowMs = 0;
  const holder = (path: string) => {
    const row = rows.get(path);
    return row !== undefined && row.endsAt > nowMs ? { path, owner: row.owner, token: row.token } : undefined;
  };
  return {
    holder,
    advance(ms: number) {
      nowMs += ms;
    },
    claim(path: string, owner: string, ms: number) {
      if ((holder(path)?.owner ?? owner) !== owner) return false;
      rows.set(path, { owner, token: (rows.get(path)?.token ?? 0) + 1, endsAt: nowMs + ms });
      return true;
    },
    move(path: string, token: number, ms: number | undefined) {
      const row = rows.get(path);
      if (row === undefined || holder(path)?.token !== token) return false;
      row.endsAt = ms === undefined ? 0 : nowMs + ms;
      return true;
    },
    held: () => ["a", "b"].flatMap((path) => holder(path) ?? []),
  };
}
