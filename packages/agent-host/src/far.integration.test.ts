import { chownSync, cpSync, mkdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type ExecRequestInput, newId } from "@slipway/contract";
import { isSideCall, type ScriptedProgram, sideAnswer } from "@slipway/gateway/scripted";
import type { Sandbox } from "@slipway/sandbox";
import { createNetwork, execOn, startLinkBox } from "@slipway/sandbox/testing/link";
import { expect, onTestFinished, test } from "vitest";
import { agentTestMs, openSite, toEnd } from "./testing/site.ts";
import { toolDirectories } from "./tools.ts";

/** Paced answers with an action in between: long enough to be cut in the middle of. */
const slow: ScriptedProgram = (request) => {
  if (isSideCall(request)) return sideAnswer(request);
  const { step } = request;
  return { text: "word ".repeat(60), paceMs: 20, ...(step < 5 && { actions: [{ run: `echo ${step} >> steps` }] }) };
};

test(
  "a run in a far sandbox, over a network that delays and cuts, tells each event once and in order",
  async () => {
    await using site = await openSite({ programs: { slow }, model: "scripted/slow" });
    await using box = await startLinkBox();
    const toolsDirectory = join(box.dir, "tools");
    mkdirSync(toolsDirectory);
    // The other user may not pass through to where they are.
    for (const [name, path] of Object.entries(await toolDirectories("builtin", "")))
      cpSync(path, join(toolsDirectory, name), { recursive: true, dereference: true });
    // Not below the work tree, whose changes are events.
    const runs = join(box.dir, "runs");
    mkdirSync(runs);
    chownSync(runs, box.uid, box.uid);
    const network = createNetwork(box.port, 50);
    const link = box.link(network.open);
    const sandbox = {
      id: newId("sbx"),
      toolsDirectory,
      exec: ({ env, ...request }: ExecRequestInput) =>
        execOn(box, link, { ...request, env: { ...env, SLIPWAY_RUN_DIR: runs } }),
      openChannel: () => link.openChannel(),
    } as unknown as Sandbox;
    await using run = await site.start(sandbox, { task: { agent: "builtin", prompt: "Work", workdir: box.workdir } });
    const cutting = setInterval(() => network.cut(), 1500);
    onTestFinished(() => clearInterval(cutting));
    const { events, end } = await toEnd(run);
    expect(end).toMatchObject({ reason: "completed" });
    expect(network.cuts).toBeGreaterThan(0);
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index + 1));
    expect(await readFile(join(box.workdir, "steps"), "utf8")).toBe("0\n1\n2\n3\n4\n");
  },
  agentTestMs,
);
