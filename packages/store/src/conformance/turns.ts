import { type BuildId, newId } from "@slipway/contract";
import type { CandidateRecord, DisputeRecord, MergeRecord, SandboxRecord, Turn } from "@slipway/engine";
import { expect, test } from "vitest";
import { attempt, drivenBuild, driver, openTestStore, task } from "./context.ts";
import type { OpenedStore } from "./subject.ts";

export function describeTurns(opened: () => OpenedStore): void {
  const first = { turn: 0, through: 1 };
  const decided = { type: "task.assigned", data: { task: "cart" } };

  test("a turn changes the build, its records and its events together", async () => {
    const { store, clock } = opened();
    const build = await drivenBuild(store);
    clock.advance(7);
    const tasks = [task(build, "cart", { dependencies: ["login"] }), task(build, "login", { level: 2 })];
    const working = attempt(build);
    const change = { status: "running", priority: 3, details: { round: 1 } } as const;
    const turn = { ...first, build: change, records: { tasks, attempts: [working] }, events: [decided] };
    expect(await store.builds.apply(build, driver, turn)).toEqual({ lastEvent: 2 });
    const state = await store.builds.state(build);
    expect(state).toMatchObject({ tasks, attempts: [working], sandboxes: [], candidates: [], checkpoints: [] });
    expect(state.build).toMatchObject({ ...change, turn: 1, appliedThrough: 1, lastEvent: 2, updatedAt: clock.now() });
    expect(await store.events.read(build, 1)).toMatchObject([{ ...decided, sequence: 2, source: "decision" }]);
    expect(await store.events.read(build, 0, { source: "report" })).toHaveLength(1);
  });

  test("a turn sets the build's budget with all else, and keeps plans as they are", async () => {
    const { store } = opened();
    const build = await drivenBuild(store);
    const plan = { build, round: 1, intentHash: "sha256:1", tasks: [] };
    await store.builds.apply(build, driver, { ...first, budgetMicroUsd: 7, records: { plans: [plan] }, events: [] });
    expect(await store.ledger.balance(build)).toMatchObject({ budgetMicroUsd: 7 });
    const other = { turn: 1, through: 1, records: { plans: [{ ...plan, intentHash: "sha256:2" }] }, events: [] };
    const changed = store.builds.apply(build, driver, { ...other, budgetMicroUsd: 9 });
    await expect(changed).rejects.toMatchObject({ code: "record_final" });
    expect(await store.builds.records(build, "plans")).toEqual([plan]);
    expect(await store.ledger.balance(build)).toMatchObject({ budgetMicroUsd: 7 });
  });

  test("a turn that fails in the middle leaves nothing", async () => {
    const { store } = opened();
    const build = await drivenBuild(store);
    const records = { tasks: [task(build, "cart"), task(build, "pay", { status: "lost" as never })] };
    const failed = store.builds.apply(build, driver, { ...first, records, events: [decided] });
    await expect(failed).rejects.toMatchObject({ code: "invalid_request" });
    const foreign = { tasks: [task(newId("bld"), "cart")] };
    const stolen = store.builds.apply(build, driver, { ...first, records: foreign, events: [] });
    await expect(stolen).rejects.toMatchObject({ code: "invalid_request" });
    const badEvent = { ...first, records: { tasks: [task(build, "cart")] }, events: [{ type: "x" }] };
    await expect(store.builds.apply(build, driver, badEvent)).rejects.toMatchObject({ code: "invalid_request" });
    expect(await store.builds.state(build)).toMatchObject({ build: { turn: 0, lastEvent: 1 }, tasks: [] });
  });

  test("a turn is applied once", async () => {
    const { store, url } = opened();
    const build = await drivenBuild(store);
    await using second = await openTestStore(url);
    const turn: Turn = { ...first, events: [decided] };
    const both = await Promise.allSettled([
      store.builds.apply(build, driver, turn),
      second.store.builds.apply(build, driver, turn),
    ]);
    expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    await expect(store.builds.apply(build, driver, turn)).rejects.toMatchObject({ code: "build_moved" });
    expect(await store.builds.get(build)).toMatchObject({ turn: 1, lastEvent: 2 });
  });

  test("a turn takes in no event that is not there, and none twice", async () => {
    const { store } = opened();
    const build = await drivenBuild(store);
    const ahead = store.builds.apply(build, driver, { turn: 0, through: 2, events: [] });
    await expect(ahead).rejects.toMatchObject({ code: "build_moved" });
    await store.builds.apply(build, driver, { turn: 0, through: 1, events: [] });
    const back = store.builds.apply(build, driver, { turn: 1, through: 0, events: [] });
    await expect(back).rejects.toMatchObject({ code: "build_moved" });
  });

  test("a record replaces the one with its key", async () => {
    const { store } = opened();
    const build = await drivenBuild(store);
    await store.builds.apply(build, driver, { ...first, records: { tasks: [task(build, "cart")] }, events: [] });
    const merged = task(build, "cart", { status: "merged", attempts: 2 });
    await store.builds.apply(build, driver, { turn: 1, through: 1, records: { tasks: [merged] }, events: [] });
    expect(await store.builds.records(build, "tasks")).toEqual([merged]);
  });

  test("the state of a build holds what has not ended, and the last checkpoint of it", async () => {
    const { store } = opened();
    const build = await drivenBuild(store);
    const working = attempt(build);
    const over = attempt(build, { endedAt: 9 });
    const checkpoint = (id: string, owner: typeof working, createdAt: number) => {
      const { id: attemptId } = owner;
      return { id, build, attempt: attemptId, sandbox: null, snapshot: null, phase: "build", createdAt, details: {} };
    };
    const checkpoints = [
      checkpoint("c1", working, 1),
      checkpoint("c2", working, 5),
      checkpoint("c0", working, 5),
      checkpoint("c3", over, 7),
    ];
    const records = {
      attempts: [working, over],
      sandboxes: [sandbox(build, null), sandbox(build, 4)],
      candidates: [candidate(build, null), candidate(build, 5)],
      checkpoints,
    };
    await store.builds.apply(build, driver, { ...first, records, events: [] });
    expect(await store.builds.state(build)).toMatchObject({
      attempts: [working],
      sandboxes: [records.sandboxes[0]],
      candidates: [records.candidates[0]],
      checkpoints: [{ id: "c2" }],
    });
    expect(await store.builds.records(build, "attempts")).toHaveLength(2);
    expect(await store.builds.records(build, "checkpoints", { offset: 1, limit: 2 })).toMatchObject([
      { id: "c1" },
      { id: "c2" },
    ]);
    const last = { isReversed: true, limit: 2 };
    expect(await store.builds.records(build, "checkpoints", last)).toMatchObject([{ id: "c3" }, { id: "c2" }]);
  });

  test("a plan of more tasks than a page holds is whole in the state", async () => {
    const { store } = opened();
    const build = await drivenBuild(store);
    const tasks = Array.from({ length: 1200 }, (_, index) => task(build, `task-${index}`));
    await store.builds.apply(build, driver, { ...first, records: { tasks }, events: [] });
    expect((await store.builds.state(build)).tasks).toHaveLength(1200);
    expect(await store.builds.records(build, "tasks")).toHaveLength(1000);
  });

  test("a merge happens once: the same again changes nothing, another one in its place is refused", async () => {
    const { store } = opened();
    const build = await drivenBuild(store);
    const merge: MergeRecord = merged(build, 1);
    await store.builds.apply(build, driver, { ...first, records: { merges: [merge] }, events: [] });
    await store.builds.apply(build, driver, { turn: 1, through: 1, records: { merges: [merge] }, events: [] });
    for (const other of [{ ...merge, commit: "other" }, { ...merge, position: 2 }, merged(build, 1)]) {
      const second = store.builds.apply(build, driver, {
        turn: 2,
        through: 1,
        records: { merges: [other] },
        events: [],
      });
      await expect(second).rejects.toMatchObject({ code: "record_final" });
    }
    expect(await store.builds.records(build, "merges")).toEqual([merge]);
  });

  test("an intent changes until it is locked, and its checks are kept apart", async () => {
    const { store } = opened();
    const build = await drivenBuild(store);
    let turn = 0;
    const put = (hash: string | null, value: string) =>
      store.builds.apply(build, driver, {
        turn: turn++,
        through: 1,
        records: { intents: [{ build, hash, intent: { value } }] },
        events: [],
      });
    await put(null, "draft");
    await put(null, "second draft");
    await put("sha256:1", "locked");
    await put("sha256:1", "locked");
    await expect(put("sha256:2", "changed")).rejects.toMatchObject({ code: "record_final" });
    turn--;
    await expect(put(null, "locked")).rejects.toMatchObject({ code: "record_final" });
    turn--;
    const check = { build, criterion: "cart", intentHash: "sha256:1", check: { secret: true } };
    await store.builds.apply(build, driver, { turn, through: 1, records: { checks: [check] }, events: [] });
    expect(await store.builds.records(build, "intents")).toEqual([
      { build, hash: "sha256:1", intent: { value: "locked" } },
    ]);
    expect(await store.builds.records(build, "checks")).toEqual([check]);
  });

  test("a dispute is kept with both versions of its check, and replaced by its number", async () => {
    const { store } = opened();
    const build = await drivenBuild(store);
    const [one, two] = [dispute(build, 1), dispute(build, 2, { criterion: "pays", because: "Nobody's wish" })];
    await store.builds.apply(build, driver, { ...first, records: { disputes: [two, one] }, events: [] });
    expect(await store.builds.records(build, "disputes")).toEqual([one, two]);
    const replacement = { before: { steps: ["see it"] }, after: { steps: ["open it", null, 3, true] } };
    const settled = dispute(build, 1, { status: "check", because: "It is so.", replacement, endedAt: 9 });
    await store.builds.apply(build, driver, { turn: 1, through: 1, records: { disputes: [settled] }, events: [] });
    expect(await store.builds.records(build, "disputes")).toEqual([settled, two]);
    expect(await store.builds.records(await drivenBuild(store), "disputes")).toEqual([]);
  });

  test("results of gates are final", async () => {
    const { store } = opened();
    const build = await drivenBuild(store);
    const candidateId = newId("cnd");
    const gate = { build, candidate: candidateId, gate: "swarm", round: 0, score: 87.5, durationMs: 9, endedAt: 1 };
    const told = {
      parts: [{ name: "home", verdict: "passed" as const, score: 90, failedAt: null }],
      findings: [{ gate: "swarm", text: "slow" }],
      artefacts: [{ name: "home", kind: "screenshot", key: "shots/1" }],
      costMicroUsd: 7,
    };
    const gateResults = [{ ...gate, ...told, verdict: "passed" as const }];
    await store.builds.apply(build, driver, { ...first, records: { gateResults }, events: [] });
    expect(await store.builds.records(build, "gateResults")).toEqual(gateResults);
    const changed = { gateResults: [{ ...gate, ...told, verdict: "failed" as const }] };
    const second = store.builds.apply(build, driver, { turn: 1, through: 1, records: changed, events: [] });
    await expect(second).rejects.toMatchObject({ code: "record_final" });
  });
}

function dispute(build: BuildId, number: number, change: Partial<DisputeRecord> = {}): DisputeRecord {
  const at = { task: "cart", criterion: "adds", checkIndex: 0, step: 3 };
  const open = { status: "user", by: "judge", because: null, replacement: null, openedAt: 4, endedAt: null } as const;
  return { build, number, ...at, ...open, ...change };
}

function merged(build: BuildId, position: number): MergeRecord {
  return { build, candidate: newId("cnd"), task: "cart", position, commit: "b", parent: "a", mergedAt: 1 };
}

function candidate(build: BuildId, endedAt: number | null): CandidateRecord {
  const work = { task: "cart", attempt: newId("att"), commit: "b", position: 1 };
  return { id: newId("cnd"), build, ...work, status: "pending", reason: null, createdAt: 1, endedAt, details: {} };
}

function sandbox(build: BuildId, endedAt: number | null): SandboxRecord {
  const place = { provider: "local", providerId: "1", host: null, config: { image: "host" } };
  const use = { status: "running", reason: null, tasks: ["cart"], score: null, costMicroUsd: 0 };
  return {
    id: newId("sbx"),
    build,
    account: "user",
    project: "shop",
    ...place,
    ...use,
    createdAt: 1,
    activeAt: 2,
    endedAt,
  };
}
