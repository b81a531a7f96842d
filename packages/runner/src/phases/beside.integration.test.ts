import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { RunnerEvent } from "@slipway/contract";
import { describe, expect, test } from "vitest";
import { agentThat, doing, kindOf } from "./testing/agent.ts";
import { makeProject, rightSum, wrongSum } from "./testing/project.ts";
import { startAttempt as start } from "./testing/start.ts";

const commit = { run: "git add --all && git commit --quiet --message mine" };

describe("what an agent commits while it works", () => {
  test("is checked in a clean checkout, and a failure reaches the agent once, before its turn ends", async () => {
    const heard: string[] = [];
    const asked = new Set<string>();
    const { channel, over, offered, project } = await start((request) => {
      const kind = kindOf(request);
      asked.add(String(kind));
      if (kind === "findings") {
        heard.push(request.lastPrompt);
        return doing([{ write: "sum.mjs", content: rightSum }])(request);
      }
      const begin = [{ write: "sum.mjs", content: wrongSum }, commit, { run: "echo more > more.txt" }, commit];
      // From then on it is at work, and has no other end than to hear of it.
      const wait = { run: `sleep 0.05 # ${request.step}` };
      return kind === "build" ? { actions: [begin[request.step] ?? wait] } : agentThat()(request);
    });
    await offered(1);
    channel.send({ type: "merged" });
    await over;
    expect(heard[0]).toMatch(/<finding [0-9a-f]{16}>\nverify: `.*` fails in a clean checkout of [0-9a-f]{12}:/);
    expect(heard[0]).toContain("ERR_ASSERTION");
    expect(new Set(heard).size).toBe(1);
    expect(asked).toEqual(new Set(["build", "findings", "intent"]));
    expect(await project.show(await project.take(1), "sum.mjs")).toBe(rightSum.trim());
    const turns = channel.events.filter((event) => event.type === "agent" && event.event.type === "ended");
    expect(turns).toHaveLength(2);
    const phases = channel.events.flatMap((event) => (event.type === "command" && !event.ok ? [event.phase] : []));
    expect(new Set(phases)).toEqual(new Set(["build"]));
  });

  test("is reported to the host at once, on any branch", async () => {
    const project = await makeProject();
    const root = join(project.directory, "..");
    const open = join(root, "offers", "open.bundle");
    const shown = (number: number) => ({
      run: `until [ -e ${open} ]; do sleep 0.05; done; mv ${open} ${root}/shown-${number}.bundle`,
    });
    const { channel, over, offered } = await start(
      agentThat({
        build: doing([
          { write: "sum.mjs", content: rightSum },
          commit,
          shown(1),
          { run: "git checkout --quiet -b mine && echo more > more.txt" },
          commit,
          shown(2),
          { run: `git symbolic-ref HEAD > ${root}/left-at` },
        ]),
      }),
      { project },
    );
    const offer = await offered(1);
    channel.send({ type: "merged" });
    await over;
    const commits = [];
    for (const number of [1, 2]) {
      await project.git("fetch", "--quiet", join(root, `shown-${number}.bundle`), project.order.branch);
      commits.push(await project.git("rev-parse", "FETCH_HEAD"));
    }
    expect(offer).toMatchObject({ commit: commits[1] });
    const told = channel.events.flatMap((event) => {
      if (event.type === "committed") return [event.commit];
      return event.type === "agent" && event.event.type === "ended" ? ["done"] : [];
    });
    expect(told).toEqual([...commits, "done", "done"]);
    expect(await readFile(join(root, "left-at"), "utf8")).toBe("refs/heads/mine\n");
  });

  test("does not count as failed if the failure does not repeat", async () => {
    const project = await makeProject();
    const root = join(project.directory, "..");
    const once = `[ -e ${root}/failed ] || { touch ${root}/failed; exit 1; }; touch ${root}/passed`;
    const asked = new Set<string>();
    const agent = agentThat({
      build: doing([
        { write: "sum.mjs", content: rightSum },
        commit,
        { run: `until [ -e ${root}/passed ]; do sleep 0.05; done` },
      ]),
    });
    const { channel, over, offered } = await start(
      (request) => {
        asked.add(String(kindOf(request)));
        return agent(request);
      },
      { project, order: { commands: { test: `case $PWD in */beside/*) ${once};; esac; node test/sum.test.mjs` } } },
    );
    await offered(1);
    channel.send({ type: "merged" });
    await over;
    expect(asked).toEqual(new Set(["build", "intent"]));
  });

  test("is checked only during its turn, whose end waits for no check and leaves none running", async () => {
    const project = await makeProject();
    const root = join(project.directory, "..");
    const hang = `case $PWD in */beside/*) echo $$ > ${root}/at-beside; sleep 1000;; esac`;
    const isOver = `! kill -0 "$(cat ${root}/at-beside)"`;
    const { channel, over, offered, end } = await start(
      agentThat({
        build: doing([
          { write: "sum.mjs", content: rightSum },
          commit,
          { run: `until [ -s ${root}/at-beside ]; do sleep 0.05; done` },
        ]),
      }),
      { project, order: { commands: { test: `${hang}; ${isOver} && node test/sum.test.mjs` } } },
    );
    await offered(1);
    channel.send({ type: "merged" });
    await over;
    expect(end()).toMatchObject({ reason: "completed" });
    const commands = channel.events.filter((event): event is Command => event.type === "command");
    expect(commands.map(({ phase }) => phase)).toEqual(["test", "verify"]);
  });
});

type Command = Extract<RunnerEvent, { type: "command" }>;
