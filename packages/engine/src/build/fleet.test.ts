import { describe, expect, test } from "vitest";
import { createFleet, demandOf } from "./fleet.ts";
import type { Demand } from "./shares.ts";
import { after, begin, ended, merged, task, tick } from "./testing.ts";

function demand(build: string, held: number, wanted: number, user = build): Demand {
  return { build, user, priority: 0, startedAtMs: 0, held, wanted };
}

describe("a fleet", () => {
  test("with room for all gives each build what it wants", () => {
    const fleet = createFleet(10, () => {});
    expect(fleet.grant(demand("a", 0, 4))).toBe(4);
    expect(fleet.grant(demand("b", 0, 6))).toBe(6);
  });

  test("that is too small shares between users and takes no slot away", () => {
    const fleet = createFleet(4, () => {});
    expect(fleet.grant(demand("a", 0, 4))).toBe(4);
    expect(fleet.grant(demand("b", 0, 4))).toBe(0);
    expect(fleet.grant(demand("a", 1, 4))).toBe(2);
    expect(fleet.grant(demand("b", 0, 4))).toBe(2);
    expect(fleet.grant(demand("a", 2, 4))).toBe(2);
  });

  test("tells a waiting build once when it may use more", () => {
    const more: string[] = [];
    const fleet = createFleet(4, (build) => more.push(build));
    fleet.grant(demand("a", 4, 4));
    expect(fleet.grant(demand("b", 0, 2))).toBe(0);
    fleet.grant(demand("a", 3, 3));
    expect(more).toEqual(["b"]);
    fleet.grant(demand("a", 3, 3));
    expect(more).toEqual(["b"]);
    expect(fleet.grant(demand("b", 0, 2))).toBe(1);
    fleet.forget("a");
    expect(more).toEqual(["b", "b"]);
    expect(fleet.grant(demand("b", 1, 2))).toBe(2);
  });

  test("ignores an unknown build that ends", () => {
    const fleet = createFleet(1, () => {});
    fleet.forget("nobody");
    expect(fleet.grant(demand("a", 0, 1))).toBe(1);
  });
});

describe("what a build wants", () => {
  const build = { id: "a", account: "ada", createdAt: 7 };

  test("is its working and ready attempts, up to its slots", () => {
    const fresh = begin([task("a"), task("b"), task("c", ["a"])], { slots: 2 });
    expect(demandOf(fresh, build, 0)).toMatchObject({ held: 0, wanted: 2, user: "ada", startedAtMs: 7 });
    const working = tick({ ...fresh, grantedSlots: 1 }, 0);
    expect(demandOf(working, build, 0)).toMatchObject({ held: 1, wanted: 2 });
    const late = after({ ...working, grantedSlots: 2 }, 1, ended("a", 1, merged));
    expect(demandOf(late, build, 1)).toMatchObject({ held: 2, wanted: 2 });
  });

  test("is nothing while it is paused", () => {
    const paused = { ...begin([task("a")]), status: "paused" as const };
    expect(demandOf(paused, build, 0)).toMatchObject({ held: 0, wanted: 0 });
  });
});
