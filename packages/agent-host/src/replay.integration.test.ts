import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { demo, isSideCall, type ScriptedProgram } from "@slipway/gateway/scripted";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { agentTestMs, openSite, type SiteOptions, toEnd } from "./testing/site.ts";

vi.setConfig({ testTimeout: agentTestMs });

/** Writes a program and a test, runs it, and commits both: the output has times and a commit that no other run has. */
const committing: ScriptedProgram = (request) =>
  request.step === 3 && !isSideCall(request) ? { text: "I keep it.", actions: [{ run: commit }] } : demo(request);

const commit = `git init --quiet kept && cp hello.* kept && cd kept && git add . &&
git -c user.name=Ada -c user.email=ada@example.com commit --message "Say hello" && git log && ls -l`;

let cassettes: string;
beforeAll(async () => {
  cassettes = await mkdtemp(join(tmpdir(), "slipway-replay-"));
});
afterAll(() => rm(cassettes, { recursive: true }));

describe.each(["builtin", "claude-code"])("with %s", (agent) => {
  it("a recorded run is replayed to the same end at the same cost, without a model", async () => {
    const take = async (mode: "record" | "replay", programs: SiteOptions["programs"]) => {
      const environment = { SLIPWAY_CASSETTES: cassettes, SLIPWAY_CASSETTE_MODE: mode };
      await using site = await openSite({ programs, model: "scripted/committing", environment });
      await using sandbox = await site.sandbox(agent);
      await using run = await site.start(sandbox, { task: { agent, prompt: "Say hello" } });
      const { end } = await toEnd(run);
      return { end, balance: await run.balance() };
    };
    const recorded = await take("record", { committing });
    expect(recorded.end).toMatchObject({ reason: "completed" });
    expect(await take("replay", {})).toEqual(recorded);
  });
});
