import { endAs, type NumberedEvent, newId } from "@slipway/contract";
import type { AgentActionRecord } from "@slipway/engine";
import type { Ledger, RunLog } from "@slipway/gateway";
import { expect, test } from "vitest";
import { createGatewayLedger } from "../gateway-ledger.ts";
import { createRunLog } from "../run-log.ts";
import { drivenBuild } from "./context.ts";
import type { OpenedStore } from "./subject.ts";

/** The gateway's own ports: that these fit is checked by the compiler. */
const runLogOf = ({ database }: OpenedStore): RunLog => createRunLog(database);
const ledgerOf = ({ store }: OpenedStore): Ledger => createGatewayLedger(store.ledger, "server-1");

export function describeLogs(opened: () => OpenedStore): void {
  test("the gateway spends a run's money within its build's", async () => {
    const { store } = opened();
    const build = await drivenBuild(store);
    const run = newId("run");
    await store.ledger.open({ id: run, build, task: "cart", budgetMicroUsd: 100 });
    const ledger = ledgerOf(opened());
    await ledger.open(run, 100);
    expect(await ledger.reserve({ request: "a", run, microUsd: 60 })).toBe(true);
    expect(await ledger.extend("a", 50)).toBe(false);
    const usage = { input: 1, output: 2, cacheRead: 3, cacheWrite: 4 };
    const settlement = { request: "a", run, role: "build", model: "anthropic/claude", usage, microUsd: 55 };
    await ledger.settle({ ...settlement, estimated: false, end: "complete" });
    await ledger.settle({ ...settlement, estimated: false, end: "complete" });
    expect(await ledger.balance(run)).toEqual({ budgetMicroUsd: 100, spentMicroUsd: 55, reservedMicroUsd: 0 });
    expect(await store.ledger.costs(build, "provider")).toMatchObject([{ of: "anthropic", spentMicroUsd: 55 }]);
    expect(await store.ledger.costs(build, "task")).toMatchObject([{ of: "cart", spentMicroUsd: 55 }]);
  });

  const note = (sequence: number, text = `note ${sequence}`): NumberedEvent => ({
    sequence,
    at: 1,
    event: { type: "note", agent: "lead", text },
  });
  const notes = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => note(from + index));

  test("a run's events are kept in order, and a repeat is told from a forgery", async () => {
    const log = runLogOf(opened());
    const run = newId("run");
    expect(await log.next(run)).toBe(1);
    await log.append(run, notes(1, 200));
    await log.append(run, [note(201, "žluť\0")]);
    expect(await log.next(run)).toBe(202);
    expect(await log.bytes(run)).toBeGreaterThan(201 * 50);
    expect(await Array.fromAsync(log.read(run, 0))).toEqual([...notes(1, 200), note(201, "žluť\0")]);
    expect(await Array.fromAsync(log.read(run, 199))).toHaveLength(2);
    expect(await log.holds(run, notes(3, 9))).toBe(true);
    expect(await log.holds(run, [])).toBe(true);
    expect(await log.holds(run, [{ ...note(7), at: 2 }])).toBe(false);
    expect(await log.holds(run, [note(201), note(202)])).toBe(false);
    log.release(run);
    expect(await log.next(run)).toBe(202);
  });

  test("events that do not follow are a defect of the caller, and leave nothing", async () => {
    const log = runLogOf(opened());
    const run = newId("run");
    const defect = { code: "internal" };
    await expect(log.append(run, [note(2)])).rejects.toMatchObject(defect);
    await expect(log.append(run, [note(1), note(3)])).rejects.toMatchObject(defect);
    await log.append(run, [note(1)]);
    await expect(log.append(run, [note(1)])).rejects.toMatchObject(defect);
    expect(await Array.fromAsync(log.read(run, 0))).toEqual([note(1)]);
    await expect(log.append("run_/x" as never, [note(1)])).rejects.toMatchObject({ code: "invalid_request" });
  });

  test("orders are kept in their order, and the first end is the end", async () => {
    const log = runLogOf(opened());
    const run = newId("run");
    expect(await log.orders(run)).toEqual({ messages: [], end: undefined });
    await log.order(run, { type: "control", message: { sequence: 1, type: "message", text: "a\nb" } });
    await log.order(run, { type: "end", end: endAs("tampered", "first") });
    await log.order(run, { type: "end", end: endAs("flooded", "second") });
    const { messages, end } = await log.orders(run);
    expect(messages).toEqual([{ sequence: 1, type: "message", text: "a\nb" }]);
    expect(end).toEqual(endAs("tampered", "first"));
  });

  test("an agent's action is kept once", async () => {
    const { store } = opened();
    const build = await drivenBuild(store);
    const run = newId("run");
    const action = (sequence: number, ok: boolean | null): AgentActionRecord => {
      return {
        build,
        attempt: null,
        run,
        sequence,
        agent: "lead",
        action: "edit",
        ok,
        at: 5,
        details: { path: "a.ts" },
      };
    };
    await store.actions.record([action(1, true), action(2, null)]);
    await store.actions.record([action(2, false), action(3, false)]);
    await store.actions.record([]);
    expect(await store.actions.list(build)).toEqual([action(1, true), action(2, null), action(3, false)]);
    expect(await store.actions.list(build, { offset: 1, limit: 1 })).toEqual([action(2, null)]);
  });

  test("a pattern is found by its project and its error, with the last fix", async () => {
    const { store } = opened();
    const pattern = { project: "shop", signature: "TS2304", error: "no name", attempt: newId("att"), learntAt: 1 };
    await store.patterns.learn({ ...pattern, fix: "import it" });
    await store.patterns.learn({ ...pattern, fix: "declare it" });
    await store.patterns.learn({ ...pattern, project: "game", fix: "other" });
    expect(await store.patterns.find("shop", ["TS2304", "TS1"])).toEqual([{ ...pattern, fix: "declare it" }]);
    expect(await store.patterns.find("shop", [])).toEqual([]);
  });
}
