import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEnd, newId, type RunnerEvent } from "@slipway/contract";
import { isSideCall, type ScriptedProgram, sideAnswer } from "@slipway/gateway/scripted";
import { agentThat, doing, kindOf } from "@slipway/runner/testing/agent";
import { makeProject, type Project, rightSum, wrongSum } from "@slipway/runner/testing/project";
import { run as command, readBytes, type Sandbox } from "@slipway/sandbox";
import { describe, expect, it, vi } from "vitest";
import { type StartTaskRun, startTaskRun, type TaskRun } from "./task.ts";
import { agentTestMs, openSite, type Site } from "./testing/site.ts";

vi.setConfig({ testTimeout: agentTestMs });

/** Of the project, without what tests on this machine count. */
const commands = { build: "node --check sum.mjs", test: "node test/sum.test.mjs" };

interface Stage extends AsyncDisposable {
  readonly site: Site;
  readonly project: Project;
  /** What the model was asked for, side calls left out. */
  readonly requests: readonly string[];
  start(sandbox: Sandbox, options?: Partial<StartTaskRun>): Promise<TaskRun>;
}

async function setUp(program: ScriptedProgram): Promise<Stage> {
  const project = await makeProject();
  const requests: string[] = [];
  const agent: ScriptedProgram = (request) => {
    if (isSideCall(request)) return sideAnswer(request);
    requests.push(JSON.stringify([kindOf(request), request.step, request.lastPrompt]));
    return program(request);
  };
  const site = await openSite({ programs: { agent }, model: "scripted/agent" });
  const { bundle: _bundle, offers: _offers, ...order } = project.order;
  return {
    site,
    project,
    requests,
    start: async (sandbox, options = {}) =>
      await startTaskRun({
        sandbox,
        gateway: site.gateway,
        id: newId("run"),
        budgetMicroUsd: 1_000_000,
        task: { agent: "builtin" },
        order: { ...order, commands },
        main: await readFile(project.bundle),
        ...options,
      }),
    [Symbol.asyncDispose]: () => site[Symbol.asyncDispose](),
  };
}

/** The first event that fits, which comes before the run's end. */
async function eventOf<T extends RunnerEvent["type"]>(
  run: TaskRun,
  type: T,
  fits: (event: Extract<RunnerEvent, { type: T }>) => boolean = () => true,
): Promise<Extract<RunnerEvent, { type: T }>> {
  for await (const { event } of run.events()) {
    if (event.type === type && fits(event as Extract<RunnerEvent, { type: T }>)) return event as never;
  }
  throw new Error(`the run ended without ${type}: ${JSON.stringify(await run.ended)}`);
}

/** Takes an offer as a host does, without its quarantine. */
async function take(run: TaskRun, { directory, git }: Project, number: number): Promise<string> {
  const path = join(directory, "..", `taken-${number}.bundle`);
  await writeFile(path, run.readOffer(number));
  await git("fetch", "--quiet", path, `+refs/heads/attempt/sum-1:refs/offers/${number}`);
  return await git("rev-parse", `refs/offers/${number}`);
}

const toolStart = (text: string) => (event: Extract<RunnerEvent, { type: "agent" }>) =>
  event.event.type === "tool" && event.event.phase === "start" && (event.event.input ?? "").includes(text);

describe.each(["builtin", "claude-code"])("a task of %s in a sandbox", (agent) => {
  it("is built, put together with main, mended, and merged", async () => {
    await using stage = await setUp(
      agentThat({
        build: doing([
          { write: "sum.mjs", content: wrongSum },
          { write: "list.txt", content: "one\ntwo of mine\nthree\n" },
          { run: "until [ -e /tmp/go ]; do sleep 0.05; done" },
        ]),
      }),
    );
    const { site, project } = stage;
    await using sandbox = await site.sandbox(agent);
    await using run = await stage.start(sandbox, { task: { agent } });
    await eventOf(run, "agent", toolStart("/tmp/go"));
    const moved = await project.moveMain({ "list.txt": "one\ntwo of main\nthree\n" });
    await run.moveMain({ commit: moved.commit, bundle: await readFile(moved.bundle) });
    await sandbox.files.write("/tmp/go", "");
    const offer = await eventOf(run, "offered");
    const commit = await take(run, project, offer.number);
    expect(offer).toMatchObject({ commit, main: moved.commit, changed: 2 });
    expect(await project.show(commit, "sum.mjs")).toBe(rightSum.trim());
    expect(await project.show(commit, "list.txt")).toBe("one\ntwo of both\nthree");
    expect(await project.git("merge-base", commit, "main")).toBe(moved.commit);
    await run.send({ type: "merged" });
    const end = await run.ended;
    expect(end).toMatchObject({ reason: "completed" });
    expect((await run.balance()).spentMicroUsd).toBeGreaterThan(0);
    expect((await command(sandbox, "ps -e -o args=")).stdout).not.toMatch(/runner\.mjs|claude/);
  });
});

it("a runner that is killed in its sandbox is started again and continues", async () => {
  await using stage = await setUp(
    agentThat({ build: doing([{ run: "echo once >> once.txt; sleep 100" }, { write: "sum.mjs", content: rightSum }]) }),
  );
  await using sandbox = await stage.site.sandbox("builtin");
  await using run = await stage.start(sandbox);
  await eventOf(run, "agent", toolStart("once.txt"));
  await command(sandbox, "until [ -e once.txt ]; do sleep 0.02; done; pkill -9 -f runner.mjs");
  await eventOf(run, "offered");
  await run.send({ type: "merged" });
  expect(await run.ended).toMatchObject({ reason: "completed" });
  expect(Buffer.from(await readBytes(sandbox.files, "/workspace/once.txt")).toString()).toBe("once\n");
  expect(stage.requests).toEqual([...new Set(stage.requests)]);
});

it("a run in a sandbox made from a snapshot continues after the last finished step", async () => {
  await using stage = await setUp(agentThat());
  const { site, project } = stage;
  const id = newId("run");
  const first = await site.sandbox("builtin");
  const begun = await stage.start(first, { id });
  const offer = await eventOf(begun, "offered");
  const asked = stage.requests.length;
  const snapshot = await first.snapshot();
  await begun[Symbol.asyncDispose]();
  await first.destroy();
  await using second = await site.sandbox("builtin", { snapshot: snapshot.id });
  await using run = await stage.start(second, { id });
  await eventOf(run, "resumed");
  expect(await take(run, project, offer.number)).toBe(offer.commit);
  const findings = [{ gate: "tests", text: "There is no farewell." }];
  await run.send({ type: "findings", offer: offer.number, findings });
  const again = await eventOf(run, "offered", ({ number }) => number === 2);
  await run.send({ type: "merged" });
  expect(await run.ended).toMatchObject({ reason: "completed" });
  expect(await project.show(await take(run, project, again.number), "mended.txt")).toBe("mended");
  const later = stage.requests.slice(asked).map((request) => JSON.parse(request)[0]);
  expect(new Set(later)).toEqual(new Set(["findings"]));
});

it("a model that is away interrupts the attempt without failing it", async () => {
  await using stage = await setUp(agentThat({ build: () => ({ fault: { status: 529 } }) }));
  await using sandbox = await stage.site.sandbox("builtin");
  await using run = await stage.start(sandbox);
  const end = await run.ended;
  expect(end).toMatchObject({ reason: "overloaded", by: "model", message: expect.stringMatching(/./) });
  expect(afterEnd(end)).toBe("wait");
});

it("an invalid order is refused before anything runs", async () => {
  await using stage = await setUp(agentThat());
  await using sandbox = await stage.site.sandbox("builtin");
  const { bundle: _bundle, ...order } = stage.project.order;
  for (const wrong of [{ branch: "--upload-pack=evil" }, { base: "main" }, { level: 5 }, { checks: ["secret"] }]) {
    const started = stage.start(sandbox, { order: { ...order, ...wrong } });
    await expect(started).rejects.toMatchObject({ code: "invalid_request" });
  }
});
