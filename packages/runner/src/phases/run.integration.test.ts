import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { RunnerEvent } from "@slipway/contract";
import { describe, expect, test } from "vitest";
import { isToolStart, startTestRun } from "../testing/run.ts";
import { agentThat, doing, kindOf } from "./testing/agent.ts";
import { makeProject, rightSum, wrongSum } from "./testing/project.ts";
import { startAttempt as start } from "./testing/start.ts";

function phasesOf(events: readonly RunnerEvent[]): string[] {
  return events.flatMap((event) => (event.type === "phase" ? [`${event.phase} ${event.round} ${event.status}`] : []));
}

test("a task passes its six phases, is offered as a bundle and ends when it is merged", async () => {
  const { channel, over, project, offered, end, workdir } = await start(agentThat());
  const offer = await offered(1);
  const commit = await project.take(1);
  expect(offer).toMatchObject({ commit, main: project.base, changed: 1, tests: { changed: [], deleted: [] } });
  expect(await project.show(commit, "sum.mjs")).toBe(rightSum.trim());
  expect(await project.git("rev-parse", `${commit}^`)).toBe(project.base);
  expect(await project.git("ls-tree", "-r", "--name-only", commit)).not.toContain(".slipway");
  channel.send({ type: "merged" });
  await over;
  expect(end()).toEqual({ reason: "completed", message: "merged" });
  const phases = ["initialise", "build", "integrate", "test", "intent", "verify"];
  expect(phasesOf(channel.events)).toEqual(phases.flatMap((phase) => [`${phase} 1 begun`, `${phase} 1 finished`]));
  expect(channel.events).toContainEqual({
    type: "criterion",
    criterion: "adds",
    satisfied: true,
    evidence: "The test says so.",
  });
  // Once where the agent works, once in a clean checkout.
  expect(await project.commandsRun()).toEqual(["build", "test", "build", "test"]);
  expect(await readFile(join(workdir, ".git"), "utf8")).toMatch(/^gitdir: /);
});

describe("the project's own checks", () => {
  test("that fail are fixed by the agent with the model for fixes", async () => {
    const models: string[] = [];
    const program = agentThat({ build: doing([{ write: "sum.mjs", content: wrongSum }]) });
    const { channel, over, offered, project } = await start(
      async (request) => {
        models.push(`${kindOf(request)} ${request.request.model}`);
        if (kindOf(request) === "fix") expect(request.lastPrompt).toContain("ERR_ASSERTION");
        return await program(request);
      },
      { order: { fixModel: "fixes/test" }, task: { model: "work/test" } },
    );
    await offered(1);
    channel.send({ type: "merged" });
    await over;
    expect(await project.show(await project.take(1), "sum.mjs")).toBe(rightSum.trim());
    expect(new Set(models)).toEqual(new Set(["build work/test", "fix fixes/test", "intent work/test"]));
  });

  test("that fail in the same way after a fix end the attempt as looping", async () => {
    const { over, end } = await start(
      agentThat({
        build: doing([{ write: "sum.mjs", content: wrongSum }]),
        fix: doing([{ write: "other.txt", content: "no help" }]),
      }),
    );
    await over;
    expect(end()).toMatchObject({ reason: "looping", message: expect.stringContaining("6 == 5") });
  });

  test("that fail differently each time end the attempt with the last errors", async () => {
    const { over, end } = await start(
      agentThat({
        build: doing([{ write: "sum.mjs", content: wrongSum }]),
        fix: ({ step, request }) => {
          const results = request.messages.flatMap(({ parts }) => parts).filter(({ type }) => type === "tool_result");
          if (step > 0) return { text: "Done." };
          return { actions: [{ write: "sum.mjs", content: `export const sum = () => ${100 + results.length};\n` }] };
        },
      }),
      { order: { maxFixes: 2 } },
    );
    await over;
    expect(end()).toMatchObject({ reason: "checks_failed", message: expect.stringMatching(/10\d == 5/) });
  });

  test("see only what is committed", async () => {
    const { channel, over, project, offered } = await start(
      agentThat({
        build: doing([
          { write: "sum.mjs", content: 'export { sum } from "./hidden.mjs";\n' },
          { write: "hidden.mjs", content: rightSum },
          { write: ".gitignore", content: "hidden.mjs\n" },
        ]),
        fix: doing([{ run: "rm .gitignore" }]),
      }),
    );
    await offered(1);
    channel.send({ type: "merged" });
    await over;
    expect(await project.show(await project.take(1), "hidden.mjs")).toBe(rightSum.trim());
    expect(channel.events).toContainEqual(
      expect.objectContaining({ type: "command", phase: "verify", command: "build", ok: true }),
    );
  });

  test("leave nothing in the workspace", async () => {
    const project = await makeProject();
    const { channel, over, offered } = await start(agentThat(), {
      project,
      order: { commands: { ...project.order.commands, build: "echo made > made.txt; rm -f list.txt" } },
    });
    await offered(1);
    channel.send({ type: "merged" });
    await over;
    expect(await project.git("ls-tree", "--name-only", await project.take(1))).toBe("list.txt\nsum.mjs\ntest");
  });

  test("that take too long are ended, and the agent learns of it", async () => {
    const { over, end, channel } = await start(agentThat(), {
      order: { commands: { test: "sleep 1000" }, commandMs: 200, maxFixes: 0 },
    });
    await over;
    expect(end()).toMatchObject({ reason: "checks_failed", message: expect.stringContaining("sleep 1000 fails") });
    expect(phasesOf(channel.events).at(-1)).toBe("test 1 failed");
  });
});

describe("an install", () => {
  const install = "echo ran >> installs; test ! -e broken";

  test("runs only if its input has changed", async () => {
    const project = await makeProject();
    const { commit, bundle } = await project.moveMain({ "package.json": "{}", ".gitignore": "installs\n" });
    await project.git("bundle", "create", "--quiet", bundle, "main");
    const { channel, over, offered, workdir } = await start(
      agentThat({
        build: doing([
          { write: "sum.mjs", content: rightSum },
          { write: "package.json", content: '{ "private": true }' },
        ]),
      }),
      { project, order: { base: commit, bundle, commands: { ...project.order.commands, install } } },
    );
    await offered(1);
    channel.send({ type: "merged" });
    await over;
    expect(await readFile(join(workdir, "installs"), "utf8")).toBe("ran\nran\n");
    const runs = channel.events.flatMap((event) =>
      event.type === "command" && event.command === "install" ? [event.phase] : [],
    );
    expect(runs).toEqual(["initialise", "test", "verify"]);
  });

  test("that fails is reported to the agent, who may fix it", async () => {
    const project = await makeProject();
    const { commit, bundle } = await project.moveMain({ "package.json": "{}", broken: "yes\n" });
    await project.git("bundle", "create", "--quiet", bundle, "main");
    let prompt = "";
    const { channel, over, offered } = await start(
      agentThat({
        build: (request) => {
          prompt = request.lastPrompt;
          return doing([{ write: "sum.mjs", content: rightSum }, { run: "rm broken" }])(request);
        },
      }),
      { project, order: { base: commit, bundle, commands: { ...project.order.commands, install } } },
    );
    await offered(1);
    channel.send({ type: "merged" });
    await over;
    expect(prompt).toContain("The install currently fails");
  });
});

describe("a newer main", () => {
  test("is merged into the branch", async () => {
    const project = await makeProject();
    const mains = [await project.moveMain({ "old.txt": "old\n" }), await project.moveMain({ "news.txt": "news\n" })];
    const { channel, over, offered } = await start(
      agentThat({ build: doing([{ write: "sum.mjs", content: rightSum }, { run: "sleep 0.3" }]) }),
      { project },
    );
    await channel.until(isToolStart);
    for (const each of mains) channel.send({ type: "main", ...each });
    const main = { commit: mains[1]?.commit };
    expect(await offered(1)).toMatchObject({ main: main.commit, changed: 1 });
    channel.send({ type: "merged" });
    await over;
    const commit = await project.take(1);
    expect(await project.show(commit, "news.txt")).toBe("news");
    expect(await project.git("merge-base", commit, "main")).toBe(main.commit);
  });

  test("that conflicts is resolved by the agent, who sees both sides", async () => {
    const project = await makeProject();
    const main = await project.moveMain({ "list.txt": "one\ntwo of main\nthree\n" });
    const prompts: string[] = [];
    const well = agentThat({
      build: doing([
        { write: "sum.mjs", content: rightSum },
        { write: "list.txt", content: "one\ntwo of mine\nthree\n" },
        { run: "sleep 0.3" },
      ]),
    });
    const { channel, over, offered } = await start(
      async (request) => {
        if (kindOf(request) === "conflict" && request.step === 0) prompts.push(request.lastPrompt);
        // At first it does nothing about it.
        if (kindOf(request) === "conflict" && prompts.length === 1) return { text: "I see no problem." };
        return await well(request);
      },
      { project },
    );
    await channel.until(isToolStart);
    channel.send({ type: "main", ...main });
    await offered(1);
    channel.send({ type: "merged" });
    await over;
    expect(prompts[0]).toMatch(/\+two of mine[\s\S]*\+two of main/);
    expect(prompts[1]).toMatch(/still have conflict marks in them[\s\S]*list.txt/);
    const commit = await project.take(1);
    expect(await project.show(commit, "list.txt")).toBe("one\ntwo of both\nthree");
    expect(await project.git("merge-base", commit, "main")).toBe(main.commit);
  });

  test("whose conflicts are not resolved ends the attempt", async () => {
    const project = await makeProject();
    const main = await project.moveMain({ "sum.mjs": "export const sum = (...all) => all.length;\n" });
    const { channel, over, end } = await start(
      agentThat({
        build: doing([{ write: "sum.mjs", content: rightSum }, { run: "sleep 0.3" }]),
        conflict: doing([]),
      }),
      { project },
    );
    await channel.until(isToolStart);
    channel.send({ type: "main", ...main });
    await over;
    expect(end()).toMatchObject({ reason: "conflict_left", message: expect.stringContaining("sum.mjs") });
  });

  test("in an invalid bundle is ignored", async () => {
    const { channel, over, offered, project } = await start(
      agentThat({ build: doing([{ write: "sum.mjs", content: rightSum }, { run: "sleep 0.3" }]) }),
    );
    await channel.until(isToolStart);
    channel.send({ type: "main", commit: "1".repeat(40), bundle: "/etc/passwd" });
    expect(await offered(1)).toMatchObject({ main: project.base });
    channel.send({ type: "merged" });
    await over;
  });
});

test("an attempt that continues the last one begins with its files on a newer base", async () => {
  const project = await makeProject();
  const first = await start(agentThat({ build: doing([{ write: "sum.mjs", content: wrongSum }]) }), {
    project,
    order: { maxFixes: 0 },
  });
  await first.over;
  expect(first.end()).toMatchObject({ reason: "checks_failed" });
  const main = await project.moveMain({ "news.txt": "news\n" });
  let prompt = "";
  const second = await startTestRun(
    agentThat({
      build: (request) => {
        prompt = request.lastPrompt;
        return doing([{ run: "sed -i 's/\\*/+/' sum.mjs" }])(request);
      },
    }),
    {
      prompt: "",
      workdir: first.workdir,
      order: {
        ...project.order,
        base: main.commit,
        bundle: main.bundle,
        from: "last-attempt",
        level: 2,
        earlier: ["6 == 5"],
        branch: "attempt/sum-2",
      },
    },
  );
  const offer = await second.channel.until(({ type }) => type === "offered");
  second.channel.send({ type: "merged" });
  await second.over;
  expect(offer).toMatchObject({ main: main.commit, changed: 1 });
  expect(prompt).toMatch(/Find the cause first[\s\S]*6 == 5/);
});
