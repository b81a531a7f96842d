import { type BuildId, newId } from "@slipway/contract";
import { expect, test } from "vitest";
import { budgetMicroUsd, drivenBuild, newBuild } from "./context.ts";
import type { OpenedStore } from "./subject.ts";

const requested = { type: "build.requested", data: { by: "user" } };

export function describeBuilds(opened: () => OpenedStore): void {
  test("a build begins with its first event, its budget and nobody who drives it", async () => {
    const { store, clock } = opened();
    const wanted = newBuild({ details: { slots: 5 } });
    const build = await store.builds.create(wanted, budgetMicroUsd, requested);
    expect(build).toMatchObject({
      ...wanted,
      status: "planning",
      turn: 0,
      appliedThrough: 0,
      lastEvent: 1,
      priority: 0,
    });
    expect(await store.builds.get(build.id)).toEqual(build);
    expect(await store.events.read(build.id, 0)).toEqual([
      { sequence: 1, at: clock.now(), source: "report", key: null, ...requested },
    ]);
    expect(await store.ledger.balance(build.id)).toMatchObject({ budgetMicroUsd });
    expect(await store.leases.find(build.id)).toMatchObject({ holder: null, bell: null });
  });

  test("a build that is created again is the same one", async () => {
    const { store } = opened();
    const wanted = newBuild();
    const [first, second] = await Promise.all([
      store.builds.create(wanted, budgetMicroUsd, requested),
      store.builds.create(wanted, budgetMicroUsd, requested),
    ]);
    expect(second).toEqual(first);
    expect(await store.events.read(wanted.id, 0)).toHaveLength(1);
    const other = store.builds.create({ ...wanted, request: "a game" }, budgetMicroUsd, requested);
    await expect(other).rejects.toMatchObject({ code: "idempotency_conflict" });
  });

  test("builds are listed newest first, by account, project and status, page by page", async () => {
    const { store } = opened();
    const ids: BuildId[] = [];
    for (let index = 0; index < 5; index++) {
      const id = newId("bld", 1_700_000_000_000 + index);
      ids.unshift(id);
      const build = newBuild({ id, account: index % 2 === 0 ? "ann" : "bob", project: `p${index}` });
      await store.builds.create(build, budgetMicroUsd, requested);
    }
    const list = async (filter: Parameters<typeof store.builds.list>[0]) =>
      (await store.builds.list(filter)).map(({ id }) => ids.indexOf(id));
    expect(await list({})).toEqual([0, 1, 2, 3, 4]);
    expect(await list({ account: "ann" })).toEqual([0, 2, 4]);
    expect(await list({ project: "p0" })).toEqual([4]);
    expect(await list({ statuses: ["paused"] })).toEqual([]);
    expect(await list({ statuses: [] })).toEqual([]);
    expect(await list({ limit: 2, before: ids[1] as BuildId })).toEqual([2, 3]);
  });

  test("an unknown build is told apart from an empty one", async () => {
    const { store } = opened();
    const unknown = newId("bld");
    const missing = { code: "build_not_found" };
    const driver = { holder: "x", generation: 1 };
    await expect(store.builds.get(unknown)).rejects.toMatchObject(missing);
    await expect(store.builds.state(unknown)).rejects.toMatchObject(missing);
    await expect(store.events.report(unknown, [requested])).rejects.toMatchObject(missing);
    await expect(store.leases.take(unknown, driver, 1)).rejects.toMatchObject(missing);
    await expect(store.builds.apply(unknown, driver, { turn: 0, through: 0, events: [] })).rejects.toMatchObject(
      missing,
    );
    expect(
      await store.ledger.reserve({ request: "r", account: unknown, holder: "x", kind: "model", microUsd: 0 }),
    ).toBe(false);
  });

  test.each([
    ["an id of another kind", { id: "run_0" as never }],
    ["no account", { account: "" }],
    ["a zero byte", { request: "a\0b" }],
    ["an endless request", { request: "x".repeat(1_000_000) }],
    ["details that are no JSON", { details: { when: new Date() as never } }],
  ])("a build with %s is refused, and nothing of it is there", async (_, change) => {
    const { store } = opened();
    const wanted = store.builds.create(newBuild(change), budgetMicroUsd, requested);
    await expect(wanted).rejects.toMatchObject({ code: "invalid_request" });
    expect(await store.builds.list({})).toEqual([]);
  });

  test.each([-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 60])("a budget of %d is refused", async (budget) => {
    const { store } = opened();
    const wanted = store.builds.create(newBuild(), budget, requested);
    await expect(wanted).rejects.toMatchObject({ code: "invalid_request" });
    expect(await store.builds.list({})).toEqual([]);
  });

  test("text of any language and any JSON comes back as it was", async () => {
    const { store } = opened();
    const request = "Ein Café, ein 🐈‍⬛ und \u202e \u0001 \\ ' \" %";
    const details = { zero: "\0", lone: "\ud800", nested: [{ deep: [null, true, 1e300, -0.5] }], "": "" };
    const id = await drivenBuild(store, { request, details });
    expect(await store.builds.get(id)).toMatchObject({ request, details });
  });
}
