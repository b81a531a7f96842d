import { createHash } from "node:crypto";
import { createClient } from "@slipway/client";
import {
  type BuildId,
  type CheckOf,
  type CheckPlace,
  type DisputeView,
  disputesViewSchema,
  disputeViewSchema,
  gateResultSchema,
  hasCode,
  newId,
} from "@slipway/contract";
import { report, type WorkItem } from "@slipway/engine";
import { expect, onTestFinished, test } from "vitest";
import { generatedChecks } from "../simulated/generated.ts";
import { openWorld, type WorldWith } from "../testing/world.ts";

async function serve(): Promise<WorldWith<"http">> {
  const server = await openWorld({ http: {} });
  onTestFinished(() => server[Symbol.asyncDispose]());
  return server;
}

const hash = (name: string) => createHash("sha1").update(name).digest("hex");
/** The step that looks for what was entered. */
const at: CheckPlace = { criterion: "add-item", check: 0, step: 3 };
const lines = ["open /", 'fill the textbox "Item" with "Socks"', 'click the button "Add"', 'see "Socks"'];
const before = generatedChecks("sha256:x" as never).checks.find(({ proves }) => proves === at.criterion);
const after = { ...before, steps: [...(before as CheckOf<"visit">).steps, { action: "reload" as const }] };

interface Disputed {
  readonly server: WorldWith<"http">;
  readonly id: BuildId;
  readonly path: string;
  /** The next offer, which fails the check. */
  fail(): Promise<void>;
  /** What came of looking into a dispute. */
  settled(dispute: number, wrong: "app" | "check" | null, more?: object): Promise<void>;
  list(): Promise<DisputeView[]>;
  settle(number: number, body: unknown, key?: string): ReturnType<WorldWith<"http">["ask"]>;
}

/** A build whose first task has failed the same check twice. */
async function disputed(): Promise<Disputed> {
  const server = await serve();
  const { id }: { id: BuildId } = (await server.ask("POST", "/v1/builds", { body: { request: "a list" } })).body;
  await server.tell(id, report("main.made", "main", { commit: hash("main"), tree: hash("tree") }));
  const path = `/v1/builds/${id}/disputes`;
  let offers = 0;
  const fail = async () => {
    const offer = ++offers;
    const offered = { task: "setup", attempt: 1, respawn: 0, offer, candidate: newId("cnd") };
    const files = { commit: hash(`commit ${offer}`), tree: hash(`tree ${offer}`) };
    await server.tell(id, report("candidate.offered", `candidate:${offered.candidate}`, { ...offered, ...files }));
    for (let item = taken(server); item !== undefined; item = taken(server)) await server.tell(id, answer(item));
  };
  await fail();
  await fail();
  return {
    server,
    id,
    path,
    fail,
    settled: (dispute, wrong, more = {}) => {
      const told = { dispute, round: 1, wrong, because: `The ${wrong}.`, advice: null, replacement: null, ...more };
      return server.tell(id, report("dispute.settled", `dispute.settled:${dispute}:${told.round}`, told as never));
    },
    list: async () => disputesViewSchema.parse((await server.ask("GET", path)).body).disputes,
    settle: (number, body, key) =>
      server.ask("POST", `${path}/${number}`, { body, ...(key && { headers: { "idempotency-key": key } }) }),
  };
}

type Merging = Extract<WorkItem, { type: "test-merge" | "gate-run" }>;

function taken({ asked }: WorldWith<"http">): Merging | undefined {
  const index = asked.findIndex(({ type }) => type === "test-merge" || type === "gate-run");
  return index < 0 ? undefined : (asked.splice(index, 1)[0] as Merging);
}

/** Everything merges and passes, but for the check. */
function answer(item: Merging) {
  if (item.type === "test-merge") {
    const { base, commit } = item;
    const together = hash(`${base}+${commit}`);
    const outcome = { type: "clean" as const, commit: together, tree: together };
    return report("merge.tested", `merge.tested:${together}`, { base, commit, outcome });
  }
  const { run, gate } = item;
  const { criterion, ...failedAt } = at;
  const failed = {
    verdict: "failed",
    parts: [{ name: criterion, verdict: "failed", failedAt }],
    findings: [{ gate, text: "An item can be added to a list: it is not on the page." }],
  };
  const end = gate === "intent" ? failed : { verdict: "passed", findings: [] };
  return report("gate.ended", `gate.ended:${run}`, { run, ...gateResultSchema.parse({ ...end, durationMs: 1 }) });
}

test("a build without disputes has none, and one that there is not is not found", async () => {
  const server = await serve();
  const { id } = (await server.ask("POST", "/v1/builds", { body: { request: "a list", hold: "both" } })).body;
  expect(await server.ask("GET", `/v1/builds/${id}/disputes`)).toMatchObject({ status: 200, body: { disputes: [] } });
  const body = { wrong: "app", because: "It shows nothing." };
  for (const number of ["1", "0", "x", "-1", "1.5"]) {
    expect(await server.ask("POST", `/v1/builds/${id}/disputes/${number}`, { body })).toMatchObject({
      status: 404,
      body: { error: { code: "dispute_not_found" } },
    });
  }
  const elsewhere = `/v1/builds/${newId("bld")}/disputes`;
  for (const [method, path] of [
    ["GET", elsewhere],
    ["POST", `${elsewhere}/1`],
  ] as const) {
    expect(await server.ask(method, path, method === "POST" ? { body } : {})).toMatchObject({
      status: 404,
      body: { error: { code: "build_not_found" } },
    });
  }
});

test("a dispute is listed with its check step by step, and the user decides only one that waits for them", async () => {
  const { server, id, path, list, settle, settled } = await disputed();
  const [opened, ...others] = await list();
  expect(others).toEqual([]);
  expect(opened).toMatchObject({ number: 1, task: "setup", criterion: "add-item", status: "judge", by: "judge" });
  expect(opened).toMatchObject({ check: lines, step: 3, because: null, replacement: null, endedAt: null });
  const early = await settle(1, { wrong: "app", because: "It shows nothing." });
  expect(early).toMatchObject({ status: 409, body: { error: { code: "dispute_settled" } } });
  expect(early.body.error.message).toContain("its status is judge");
  expect((await server.ask("GET", `/v1/builds/${id}`)).body).toMatchObject({
    disputes: [],
    candidates: [{ task: "setup", reason: "until it is decided whether its check of add-item is wrong" }],
  });

  await settled(1, null, { because: "It could not be decided." });
  expect((await server.ask("GET", `/v1/builds/${id}`)).body).toMatchObject({
    disputes: [{ number: 1, criterion: "add-item" }],
    candidates: [{ reason: "until you decide whether its check of add-item is wrong" }],
  });
  const { status, body } = await settle(1, { wrong: "app", because: "It shows nothing." });
  expect(status).toBe(200);
  expect(disputeViewSchema.parse(body)).toMatchObject({ status: "app", by: "user", because: "It shows nothing." });
  expect(await list()).toEqual([body]);
  const late = await server.ask("POST", `${path}/1`, { body: { wrong: "check", because: "No." } });
  expect(late).toMatchObject({ status: 409, body: { error: { code: "dispute_settled" } } });
});

test("the user's word that the check is wrong has it compiled anew", async () => {
  const { server, id, list, settle, settled } = await disputed();
  await settled(1, "check");
  const { body } = await settle(1, { wrong: "check", because: "Nobody asked for that." });
  expect(body).toMatchObject({ status: "judge", by: "user", because: "Nobody asked for that.", endedAt: null });
  expect(server.asked.filter(({ type }) => type === "settle-dispute").at(-1)).toMatchObject({
    round: 2,
    ruling: "Nobody asked for that.",
  });
  const { candidates } = (await server.ask("GET", `/v1/builds/${id}`)).body;
  expect(candidates).toMatchObject([{ reason: "until its check of add-item is compiled anew" }]);
  await settled(1, "check", { round: 2, replacement: { before, after } });
  expect(await list()).toMatchObject([
    { status: "check", by: "user", check: lines, replacement: [...lines, "reload the page"] },
  ]);
});

test("each dispute of a check shows the check that it was about", async () => {
  const { fail, list, settle, settled } = await disputed();
  await settled(1, "app", { advice: "Show it." });
  await fail();
  await fail();
  expect(await list()).toMatchObject([{ status: "app" }, { number: 2, status: "user", by: "user" }]);
  await settle(2, { wrong: "check", because: "Nobody asked for that." });
  await settled(2, "check", { round: 2, replacement: { before, after } });
  expect(await list()).toMatchObject([
    { number: 1, check: lines, replacement: null },
    { number: 2, check: lines, replacement: [...lines, "reload the page"] },
  ]);
});

test("a ruling counts once under its key: sent again, it is answered with the dispute", async () => {
  const { server, id, settle, settled } = await disputed();
  await settled(1, null);
  const ruling = { wrong: "check", because: "Nobody asked for that." };
  const first = await settle(1, ruling, "ruling-1");
  const again = await settle(1, ruling, "ruling-1");
  expect(first.status).toBe(200);
  expect(again).toMatchObject({ status: 200, body: first.body });
  await settled(1, null, { round: 2 });
  expect((await settle(1, ruling, "ruling-1")).body).toMatchObject({ status: "user" });
  const events = await server.store.events.read(id, 0, { limit: 1000 });
  expect(events.filter(({ type }) => type === "order.dispute")).toHaveLength(1);
  await server.ask("POST", `/v1/builds/${id}/cancel`);
  expect((await settle(1, ruling, "ruling-1")).status).toBe(200);
  expect(await settle(1, ruling, "ruling-2")).toMatchObject({ status: 409, body: { error: { code: "build_ended" } } });
});

test("a client lists disputes and decides one by its number", async () => {
  const { server, id, settled } = await disputed();
  await settled(1, null);
  const { builds } = createClient({ socketPath: server.socketPath });
  expect((await builds.disputes(id)).disputes).toMatchObject([{ number: 1, status: "user" }]);
  const ruling = { wrong: "app", because: "It shows nothing." } as const;
  expect(await builds.settleDispute(id, 1, ruling, { key: "ruling-1" })).toMatchObject({ status: "app", by: "user" });
  const other = builds.settleDispute(id, 2, ruling);
  await expect(other).rejects.toSatisfy((error) => hasCode(error, "dispute_not_found"));
});

test("a ruling is told all that is wrong with it at once", async () => {
  const { settle, settled } = await disputed();
  await settled(1, null);
  const { status, body } = await settle(1, { wrong: "judge", because: " ", why: "x" }, "a b");
  expect({ status, code: body.error.code }).toEqual({ status: 400, code: "invalid_request" });
  expect(body.error.message).toMatch(/wrong: .*because: .*why.*letters and digits/s);
  const long = await settle(1, { wrong: "app", because: "x".repeat(501) });
  expect(long).toMatchObject({ status: 400, body: { error: { message: expect.stringContaining("because") } } });
});

test("nothing that attempts are told, no rejection and no new check's event has a value of the check", async () => {
  const { server, id, fail, settle, settled } = await disputed();
  const advice = "What was added has to be shown.";
  await settled(1, "app", { because: "It shows no Socks.", advice });
  await fail();
  await fail();
  await settle(2, { wrong: "check", because: "Nobody asked for that." });
  await settled(2, "check", { round: 2, replacement: { before, after } });
  const forAttempts = server.asked.filter(({ type }) => type === "attempt");
  expect(JSON.stringify(forAttempts)).toContain(advice);
  expect(forAttempts.map((item) => item.type === "attempt" && item.task)).toContain("setup");
  const rejected = (await server.store.events.read(id, 0, { limit: 1000 })).filter(({ type }) =>
    type.startsWith("merge."),
  );
  const { body } = await server.ask("GET", `/v1/builds/${id}/events?limit=500`);
  const settledEvents = body.events.filter(({ type }: { type: string }) => type === "dispute.settled");
  expect(settledEvents.at(-1).data).toMatchObject({ wrong: "check", replaced: true });
  expect(JSON.stringify([forAttempts, rejected, settledEvents.at(-1)])).not.toContain("Socks");
});
