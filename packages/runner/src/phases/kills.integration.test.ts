import { once } from "node:events";
import { access, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { endAs, type RunnerEvent } from "@slipway/contract";
import { expect, test } from "vitest";
import { openTestHost } from "../testing/host.ts";
import { agentThat, doing, kindOf } from "./testing/agent.ts";
import { makeProject, rightSum, wrongSum } from "./testing/project.ts";

test("a runner that is killed in each phase continues and repeats no finished step", async () => {
  const project = await makeProject();
  const root = join(project.directory, "..");
  const log = join(root, "steps.log");
  /** Leaves a line, and the first time waits to be killed. */
  const stop = (name: string) =>
    `echo ${name} >> ${log}; [ -e ${root}/at-${name} ] || { touch ${root}/at-${name}; sleep 100; }`;
  const base = await project.moveMain({ "package.json": "{}" });
  await project.git("bundle", "create", "--quiet", base.bundle, "main");
  const main = await project.moveMain({ "list.txt": "one\ntwo of main\nthree\n" });
  const requests: string[] = [];
  const agent = agentThat({
    build: doing([
      { write: "sum.mjs", content: wrongSum },
      { write: "list.txt", content: "one\ntwo of mine\nthree\n" },
      { run: stop("agent-builds") },
    ]),
    conflict: doing([{ run: stop("agent-solves") }, { write: "list.txt", content: "one\ntwo of both\nthree\n" }]),
    fix: doing([{ run: stop("agent-fixes") }, { write: "sum.mjs", content: rightSum }]),
    intent: doing([
      { run: stop("agent-states") },
      { tool: "state_criterion", input: { criterion: "adds", satisfied: true, evidence: "It does." } },
    ]),
  });
  const where = "case $PWD in */verify-*) at=verify;; *) at=workspace;; esac";
  const { run, startRunner } = await openTestHost(
    async (request) => {
      requests.push(JSON.stringify([kindOf(request), request.request.messages]));
      return await agent(request);
    },
    {
      prompt: "",
      order: {
        ...project.order,
        base: base.commit,
        bundle: base.bundle,
        fixModel: "build",
        commands: {
          install: `${where}; [ $at = verify ] || { ${stop("install")}; }`,
          build: `${where}; echo build-$at >> ${log}`,
          test: `${where}; if [ $at = verify ]; then ${stop("verify")}; else ${stop("test")}; fi; node test/sum.test.mjs`,
        },
      },
    },
  );
  const events: RunnerEvent[] = [];
  const following = (async () => {
    for await (const { event } of run.events()) events.push(event);
  })();
  let runner = startRunner();
  const restart = async () => {
    const exit = once(runner, "exit");
    runner.kill("SIGKILL");
    await exit;
    runner = startRunner();
  };
  for (const name of ["install", "agent-builds", "agent-solves", "test", "agent-fixes", "agent-states", "verify"]) {
    await exists(join(root, `at-${name}`), events);
    if (name === "agent-builds") await run.send({ type: "main", ...main });
    await restart();
  }
  await until(() => events.some(({ type }) => type === "offered"), events);
  await restart();
  const requestsBefore = requests.length;
  await until(() => events.filter(({ type }) => type === "resumed").length === 8, events);
  await run.send({ type: "merged" });
  expect(await run.ended).toEqual(endAs("completed", "merged"));
  await following;

  // What was under way when the runner died is begun again where it is the runner's own, and never where it is the agent's.
  const steps = (await readFile(log, "utf8")).trim().split("\n");
  expect(steps).toEqual([
    ...["install", "install", "agent-builds", "agent-solves"],
    ...["build-workspace", "test", "test", "agent-fixes", "build-workspace", "test"],
    ...["agent-states", "build-verify", "verify", "verify"],
  ]);
  expect(requests.length).toBe(requestsBefore);
  expect(requests).toEqual([...new Set(requests)]);
  const offers = events.filter((event) => event.type === "offered");
  expect(new Set(offers.map((offer) => JSON.stringify(offer))).size).toBe(1);
  const commit = await project.take(1);
  expect(await project.show(commit, "sum.mjs")).toBe(rightSum.trim());
  expect(await project.show(commit, "list.txt")).toBe("one\ntwo of both\nthree");
}, 600_000);

async function exists(path: string, events: readonly RunnerEvent[]): Promise<void> {
  const look = () =>
    access(path).then(
      () => true,
      () => false,
    );
  await until(look, events);
}

async function until(isSo: () => boolean | Promise<boolean>, events: readonly RunnerEvent[]): Promise<void> {
  while (!(await isSo())) {
    expect(events.at(-1)).not.toMatchObject({ type: "ended" });
    await delay(20);
  }
}
