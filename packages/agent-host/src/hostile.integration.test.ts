import { readFile } from "node:fs/promises";
import { afterEnd, newId, type RunId } from "@slipway/contract";
import type { Turn } from "@slipway/gateway/scripted";
import { run as command, type Sandbox } from "@slipway/sandbox";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { findRunner, type Run } from "./start.ts";
import { agentTestMs, openSite, type Site, toEnd } from "./testing/site.ts";

vi.setConfig({ testTimeout: agentTestMs });

/** Lets a run live until the test has done its deed: its agent waits for a file. */
const patient = ({ step }: { step: number }): Turn =>
  step === 0 ? { text: "I wait.", actions: [{ run: "until [ -e /tmp/go ]; do sleep 0.05; done" }] } : { text: "Done." };

let site: Site;
let hostile: string;
beforeAll(async () => {
  site = await openSite({ programs: { patient }, model: "scripted/patient" });
  hostile = await readFile(new URL("fixtures/hostile.mjs", import.meta.url), "utf8");
});
afterAll(() => site[Symbol.asyncDispose]());

interface Answer {
  readonly path: string;
  readonly status?: number;
  readonly body?: { readonly error?: { readonly code?: string } };
}

async function deed(sandbox: Sandbox, ...words: string[]): Promise<Answer[]> {
  await sandbox.files.write("/tmp/hostile.mjs", hostile);
  const { stdout, stderr, exitCode } = await command(sandbox, ["/opt/node/node", "/tmp/hostile.mjs", ...words]);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
  return stdout
    .trim()
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Answer);
}

const go = (sandbox: Sandbox) => sandbox.files.write("/tmp/go", "");
const task = { agent: "builtin", prompt: "Wait" };

/** A run whose agent is at work. */
async function atWork(sandbox: Sandbox): Promise<Run> {
  const started = await site.start(sandbox, { task });
  for await (const { event } of started.events()) {
    if (event.type === "agent" && event.event.type === "tool") break;
  }
  return started;
}

/** Does the deed beside one run while another one is at work, and sees that the other one notices nothing. */
async function besideAnother(words: readonly string[]): Promise<{ answers: Answer[]; run: Run; sandbox: Sandbox }> {
  await using other = await site.sandbox("builtin");
  await using otherRun = await atWork(other);
  const before = await otherRun.balance();
  const sandbox = await site.sandbox("builtin");
  const run = await atWork(sandbox);
  const answers = await deed(sandbox, ...words);
  expect(await otherRun.balance()).toEqual(before);
  await go(other);
  expect((await toEnd(otherRun)).end).toMatchObject({ reason: "completed" });
  return { answers, run, sandbox };
}

async function endOfVictim(run: Run, sandbox: Sandbox) {
  await go(sandbox);
  const ended = await toEnd(run);
  await run[Symbol.asyncDispose]();
  await sandbox.destroy();
  return ended;
}

it("an event that is sent again with other content ends only its own run as tampered", async () => {
  const { run, sandbox } = await besideAnother(["forge"]);
  expect((await endOfVictim(run, sandbox)).end).toMatchObject({ reason: "tampered" });
});

it.each(["rate_limited", "budget"])(
  "%s that the gateway has not seen fails the attempt, and nothing waits for it",
  async (reason) => {
    await using sandbox = await site.sandbox("builtin");
    await using run = await atWork(sandbox);
    await deed(sandbox, "waits", reason);
    const { end } = await toEnd(run);
    expect(end).toMatchObject({ reason: "crashed", message: expect.stringContaining(reason) });
    expect(afterEnd(end)).toBe("retry");
  },
);

it("a request that no run could pay for turns an end by budget into truncated", async () => {
  await using sandbox = await site.sandbox("builtin");
  await using run = await atWork(sandbox);
  const [absurd] = await deed(sandbox, "absurd");
  expect(absurd).toMatchObject({ status: 402 });
  await deed(sandbox, "waits", "budget");
  const { end } = await toEnd(run);
  // Which is counted, and fails the attempt when it comes too often.
  expect(end).toMatchObject({ reason: "truncated", by: "host" });
  expect(afterEnd(end)).toBe("wait");
});

it("a run that was released and reopened cannot end as budget either", async () => {
  await using sandbox = await site.sandbox("builtin");
  const first = await atWork(sandbox);
  await first[Symbol.asyncDispose]();
  const exec = await findRunner(sandbox);
  await using run = await site.start(sandbox, { task, again: { id: first.id, ...(exec && { exec }) } });
  await deed(sandbox, "waits", "budget");
  expect((await toEnd(run)).end).toMatchObject({ reason: "crashed", message: expect.stringContaining("budget") });
});

it("success that is posted in the runner's name affects only that run and is stored unchanged", async () => {
  const { answers, run, sandbox } = await besideAnother(["success"]);
  expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  const { events, end } = await endOfVictim(run, sandbox);
  expect(["completed", "tampered"]).toContain(end.reason);
  expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index + 1));
});

it("repeated, reordered and early events are never stored twice or out of order", async () => {
  const { run, sandbox } = await besideAnother(["reorder"]);
  const { events, end } = await endOfVictim(run, sandbox);
  // The runner counts on from where it was, and meets the numbers that were taken.
  expect(end.reason).toBe("tampered");
  expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index + 1));
  expect(events.filter(({ event }) => event.type === "note").length).toBeLessThanOrEqual(1);
});

it("garbage is refused and changes nothing", async () => {
  const { answers, run, sandbox } = await besideAnother(["garbage"]);
  for (const { status = 0 } of answers) expect(status === 0 || (status >= 400 && status < 500)).toBe(true);
  expect((await endOfVictim(run, sandbox)).end).toMatchObject({ reason: "completed" });
});

it("models of the judge's role and of other roles are refused", async () => {
  const { answers, run, sandbox } = await besideAnother(["judge"]);
  expect(answers.map(({ status }) => status)).toEqual([403, 403, 404]);
  expect((await endOfVictim(run, sandbox)).end).toMatchObject({ reason: "completed" });
});

it("another run's token and a made-up token are refused on this run's socket", async () => {
  await using other = await site.gateway.openRun({
    id: newId("run") as RunId,
    roles: ["build"],
    budgetMicroUsd: 1_000_000,
    task: { ...task, model: "patient" },
  });
  const { answers, run, sandbox } = await besideAnother(["stranger", other.token]);
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 401));
  expect((await other.balance()).spentMicroUsd).toBe(0);
  expect((await endOfVictim(run, sandbox)).end).toMatchObject({ reason: "completed" });
});

it("a runner that is killed after each restart ends as lost", async () => {
  await using sandbox = await site.sandbox("builtin");
  await using run = await atWork(sandbox);
  // It continues until the sandbox ends.
  const killing = deed(sandbox, "kill").catch(() => {});
  expect((await toEnd(run)).end).toMatchObject({ reason: "runner_lost" });
  await sandbox.stop();
  await killing;
});

it("a runner that is killed once continues and repeats nothing", async () => {
  await using sandbox = await site.sandbox("builtin");
  await using run = await atWork(sandbox);
  await command(sandbox, "pkill -9 -f /opt/runner/runner.mjs");
  await go(sandbox);
  const { events, end } = await toEnd(run);
  expect(end).toMatchObject({ reason: "completed" });
  expect(events.some(({ event }) => event.type === "resumed")).toBe(true);
});
