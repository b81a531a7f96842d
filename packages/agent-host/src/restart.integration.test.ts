import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { type EndReason, newId } from "@slipway/contract";
import { openRunLog } from "@slipway/gateway";
import { isSideCall, type ScriptedProgram, sideAnswer } from "@slipway/gateway/scripted";
import { readBytes, type Sandbox } from "@slipway/sandbox";
import { expect, it } from "vitest";
import type { HostPlan } from "./fixtures/host.ts";
import { agentTestMs, openSite, type Site } from "./testing/site.ts";

/** Four paced answers with an action in between: long enough to be killed in the middle of. */
const slow: ScriptedProgram = (request) => {
  if (isSideCall(request)) return sideAnswer(request);
  const { step } = request;
  return {
    text: "word ".repeat(60),
    paceMs: 20,
    ...(step < 3 && { actions: [{ run: `echo step ${step} >> steps` }] }),
  };
};

/** Agents do not start at the same time: none comes past this step, and so to its end, before it is released. */
function holdAt(step: number) {
  let isReleased = false;
  const program: ScriptedProgram = async (request) => {
    const turn = await slow(request);
    const goesOn = isReleased || request.step < step || isSideCall(request);
    return goesOn ? turn : { ...turn, fault: "hangStream" };
  };
  const release = () => {
    isReleased = true;
  };
  return { program, release };
}

it(
  "20 agents whose host is killed while they stream go on with the next one; nothing is done, told or billed twice",
  async () => {
    const { program, release } = holdAt(2);
    await using site = await openSite({ programs: { slow: program }, model: "scripted/slow" });
    const ends = await killHostOf(site, Array(20).fill("builtin"), release);
    expect(ends.map(({ reason }) => reason)).toEqual(ends.map(() => "completed"));
    for (const { files } of ends) expect(await steps(files)).toBe("step 0\nstep 1\nstep 2\n");
  },
  agentTestMs,
);

/** What a program may say of answers that broke off, or that did not come. */
const brokenOff: readonly EndReason[] = ["network", "overloaded", "truncated"];

it(
  "Claude Code and Codex whose host is killed while they stream go on or end by a typed reason, billed once",
  async () => {
    const { program, release } = holdAt(0);
    await using site = await openSite({ programs: { slow: program }, model: "scripted/slow" });
    const ends = await killHostOf(site, ["claude-code", "acp:codex"], release);
    for (const { files, reason, message } of ends) {
      if (reason === "completed") expect(await steps(files)).toContain("step 2\n");
      else expect(brokenOff, message).toContain(reason);
    }
  },
  agentTestMs,
);

/** Runs agents in a host that is killed while all of them stream, and then in another one to their ends. */
async function killHostOf(site: Site, agents: readonly string[], onKilled: () => void) {
  const places = await Promise.all(
    agents.map(async (agent) => ({ agent, run: newId("run"), sandbox: await site.sandbox(agent) })),
  );
  const plan: HostPlan = {
    stateDir: join(site.directory, "state"),
    directory: join(site.directory, "host"),
    modelSocket: join(site.directory, "model.sock"),
    runs: places.map(({ agent, sandbox, run }) => ({ agent, run, sandbox: sandbox.id, exec: newId("exc") })),
  };
  const file = join(site.directory, "plan.json");
  await writeFile(file, JSON.stringify(plan));

  const first = startHost(file);
  await first.said("streaming", agents.length);
  await first.kill();
  onKilled();
  const second = startHost(file);
  const ends = (await second.said("run", agents.length)) as End[];
  await second.exited;
  expect(ends).toHaveLength(agents.length);

  const log = await openRunLog(join(plan.directory, "events"));
  for (const { run } of plan.runs) {
    const events = await Array.fromAsync(log.read(run, 0));
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index + 1));
    expect(events.filter(({ event }) => event.type === "ended").length).toBe(1);
  }
  expect(await billedTwice(join(plan.directory, "ledger"))).toEqual([]);
  return places.map(({ run, sandbox }) => {
    const { reason, message } = ends.find((end) => end.run === run) as End;
    return { files: sandbox.files, reason, message };
  });
}

async function steps(files: Sandbox["files"]): Promise<string> {
  return Buffer.from(await readBytes(files, "/workspace/steps")).toString();
}

interface End {
  readonly run: string;
  readonly reason: EndReason;
  readonly message: string;
}

function startHost(plan: string) {
  const program = fileURLToPath(new URL("fixtures/host.ts", import.meta.url));
  const child = spawn(process.execPath, [program, plan], { stdio: ["ignore", "pipe", "inherit"] });
  const exited = once(child, "exit");
  const lines = createInterface({ input: child.stdout });
  const heard: object[] = [];
  lines.on("line", (line) => heard.push(JSON.parse(line)));
  return {
    exited,
    /** What it said with this word, when that is enough or it has ended. */
    async said(word: string, count: number) {
      const matching = () => heard.filter((line) => word in line);
      while (matching().length < count && child.exitCode === null) await Promise.race([once(lines, "line"), exited]);
      return matching();
    },
    async kill() {
      expect(child.exitCode).toBeNull();
      child.kill("SIGKILL");
      await exited;
    },
  };
}

/** Requests that the books settle more than once. */
async function billedTwice(directory: string): Promise<string[]> {
  const settled = new Map<string, number>();
  for (const name of await readdir(directory)) {
    if (!name.endsWith(".jsonl")) continue;
    for (const line of (await readFile(join(directory, name), "utf8")).split("\n").filter(Boolean)) {
      const { type, request } = JSON.parse(line);
      if (type === "settle") settled.set(request, (settled.get(request) ?? 0) + 1);
    }
  }
  expect(settled.size).toBeGreaterThan(0);
  return [...settled].filter(([, count]) => count > 1).map(([request]) => request);
}
