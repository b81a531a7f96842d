import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newId, type SandboxId } from "@slipway/contract";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openBoxes } from "../../../keeper/boxes/boxes.ts";
import { systemClock } from "../../../keeper/clock.ts";
import { type EventLog, openEventLog } from "../../../keeper/events/log.ts";
import { type ReconcileParts, reconcile } from "../../../keeper/reconcile.ts";
import { writeRecord } from "../../../keeper/record.ts";
import { type Layout, layoutOf, prepareStateDirectory } from "../layout.ts";
import type { Origin, SandboxRecord } from "../record.ts";
import type { Boxes } from "./boxes/boxes.ts";
import { openLayers } from "./boxes/layers.ts";
import { identify, type ProcessIdentity } from "./boxes/process.ts";
import { recordFixture } from "./boxes/record-fixture.ts";
import { createRuntime, type RuntimeParts } from "./boxes/runtime.ts";

let root: string;
let layout: Layout;
let events: EventLog;
let failed: string[];
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "slipway-"));
  layout = layoutOf(join(root, "state"));
  prepareStateDirectory(layout, process.getuid?.() ?? 0);
  events = openEventLog(layout.events, () => 0);
  failed = [];
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function boxesOf(...records: SandboxRecord[]): Boxes {
  for (const record of records) writeRecord(layout.sandboxRecord(record.id), record);
  return openBoxes<SandboxRecord>(layout, events, systemClock, { onChange() {}, onForget() {} });
}

type Parts = ReconcileParts<SandboxRecord, Origin, ProcessIdentity>;

/** A runtime that can only look and clean up. */
function partsWith(boxes: Boxes, changes: Partial<Parts> = {}, removeTree = remove): Parts {
  const runtime = createRuntime({
    layout,
    boxes,
    removeTree,
    layers: openLayers(layout.layers, null, async () => {}),
    hold: { oomKills: async () => 0, toldOomKills: new WeakMap() },
  } as unknown as RuntimeParts);
  return {
    events,
    boxes,
    runtime: { ...runtime, end: async () => {} },
    lifecycle: { died: async () => {} },
    collectGarbage: async () => 0,
    log: (line) => failed.push(line.split(":")[0] ?? ""),
    onError: ({ id }) => failed.push(id),
    ...changes,
  };
}

const remove = async (path: string) => rmSync(path, { recursive: true });

function destroyedIn(log: EventLog): SandboxId[] {
  return log
    .after(0)
    .filter(({ type }) => type === "sandbox.destroyed")
    .map(({ sandbox }) => sandbox);
}

test("a sandbox that cannot be ended keeps a new keeper from no other", async () => {
  const [bad, good] = [recordFixture({ state: "running" }), recordFixture({ state: "running" })];
  const boxes = boxesOf(bad, good);
  const parts = partsWith(boxes);
  const end = async ({ id }: { id: string }) => {
    if (id === bad.id) throw new Error("does not end");
  };
  const failing = { ...parts, runtime: { ...parts.runtime, end } };
  expect(await reconcile(failing, { starting: true })).toMatchObject({ lost: [good.id] });
  expect(failed).toEqual([bad.id]);
  expect(boxes.get(good.id).record).toMatchObject({ state: "stopped", reason: "provider_lost" });
});

test("a box without a record that cannot be removed keeps no other from going", async () => {
  const [bad, good] = [newId("sbx", 1), newId("sbx", 2)];
  for (const id of [bad, good]) mkdirSync(layout.box(id).root);
  const removeTree = async (path: string) => {
    if (path.endsWith(bad)) throw new Error("cannot be removed");
    rmSync(path, { recursive: true });
  };
  await reconcile(partsWith(boxesOf(), {}, removeTree), { starting: true });
  expect(failed).toEqual([bad]);
  expect(destroyedIn(events)).toEqual([good]);
});

test("a sandbox that started while others were looked at is not taken for dead", async () => {
  const [dead, starting] = [recordFixture({ state: "running" }), recordFixture({ state: "creating" })];
  const boxes = boxesOf(dead, starting);
  const died: SandboxId[] = [];
  const lifecycle = {
    async died({ id }: { id: SandboxId }) {
      died.push(id);
      boxes.setState(boxes.get(starting.id), "running", "started", { process: identify(process.pid) });
    },
  };
  expect((await reconcile(partsWith(boxes, { lifecycle }), { starting: false })).lost).toEqual([dead.id]);
  expect(died).toEqual([dead.id]);
});

test("a destroy that ends while others are looked at is told once, and ends no stray", async () => {
  const [first, second] = [newId("sbx", 1), newId("sbx", 2)];
  for (const id of [first, second]) mkdirSync(layout.box(id).root);
  const removeTree = async () => {
    for (const id of [first, second]) rmSync(layout.box(id).root, { recursive: true, force: true });
  };
  await reconcile(partsWith(boxesOf(), {}, removeTree), { starting: false });
  expect(destroyedIn(events)).toEqual([first]);
});

test("what runs without a record is ended", async () => {
  const id = newId("sbx");
  const script = "process.stdout.write('up'); setInterval(() => {}, 1000)";
  const args = ["-e", script, "--", layout.box(id).root, layout.mountPoint];
  const stray = spawn(process.execPath, args, { argv0: "slipway-launch", stdio: ["ignore", "pipe", "inherit"] });
  const gone = once(stray, "exit");
  await once(stray.stdout, "data");
  expect(await reconcile(partsWith(boxesOf()), { starting: false })).toMatchObject({ ended: [id] });
  expect(await gone).toEqual([null, "SIGKILL"]);
});
