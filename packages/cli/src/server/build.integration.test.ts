import { join } from "node:path";
import { createClient } from "@slipway/client";
import { serverFiles } from "@slipway/contract";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type Bin, openBin } from "../testing/bin.ts";
import { type } from "../testing/type.ts";

// Longer than a terminal waits.
vi.setConfig({ testTimeout: 300_000 });

let slipway: Bin;
const server = {
  SANDBOX_PROVIDER: "simulated",
  // As slow as in life: what is waited for is never over before it was seen.
  SLIPWAY_SIMULATION_SPEED: "1",
  SLIPWAY_MODEL: "scripted/planner",
  NO_COLOR: "1",
  TERM: "xterm",
};

beforeAll(async () => {
  slipway = await openBin(server);
});
afterAll(async () => {
  await slipway?.run(["down"]);
  await slipway?.[Symbol.asyncDispose]();
});

const json = async (...argv: string[]) => {
  const { code, stdout, stderr } = await slipway.run(["--json", ...argv]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout);
};

test("up starts a server once and says where its log is", async () => {
  const { pid, log, builds } = await json("up");
  expect({ log, builds }).toEqual({ log: `${slipway.stateDir}/server.log`, builds: [] });
  expect((await json("up")).pid).toBe(pid);
});

test("a build is agreed on, drawn, resized and paused from a terminal, which is given back as it was", async () => {
  const { shown, raw, ...end } = await type(
    slipway,
    ["build", "--parallel", "2", "a habit tracker"],
    [
      ["Is this what you want?", "\\r"],
      ["Carry it out", "y\\r"],
      ["of 2 at work", "resize 60 18"],
      ["of 2 at work", "\\x03"],
      ["or [b]ack?", "p\\r"],
    ],
  );
  expect(end, shown.slice(-2000)).toEqual({ code: 3, restored: true, left: 0 });
  // Starting, or further on by the time that it is drawn.
  expect(shown).toMatch(/● setup +[a-z]/);
  expect(shown).toContain("after setup");
  expect(shown).toMatch(/paused until it is resumed: a habit tracker/);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  expect(raw.match(/\u001b\[\?25[hl]/g)?.at(-1)).toBe("\u001b[?25h");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  expect(raw.match(/\u001b\[\?7[hl]/g)?.at(-1)).toBe("\u001b[?7h");
  expect(await json("status")).toMatchObject({ status: "paused", reason: "user", settings: { slots: 2 } });
});

test("a build that is left goes on; down hands it over, and the next server ends it", async () => {
  const {
    shown,
    raw: _raw,
    ...end
  } = await type(
    slipway,
    ["build", "--yes", "a shop"],
    [
      ["at work", "\\x03"],
      ["or [b]ack?", "\\x03"],
    ],
  );
  expect(end, shown.slice(-2000)).toMatchObject({ code: 4, restored: true, left: 0 });
  const [, id = ""] = /slipway watch (bld_\w+)/.exec(shown) ?? [];
  expect(await json("down")).toMatchObject({ stopped: true, paused: [], handedOver: [id] });
  expect(await json("down")).toEqual({ stopped: false });
  const { code, stdout } = await slipway.run(["watch", id], "", { SLIPWAY_SIMULATION_SPEED: "20000" });
  expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringMatching(/^succeeded in .*: a shop\n/) });
  // A watch tells what comes after its beginning, and all of this may be over by then.
  expect((await slipway.run(["logs", id])).stdout).toContain(" is merged\n");
});

test("a server has one provider", async () => {
  const { code, stderr } = await slipway.run(["build", "--yes", "--build-mode", "local", "a shop"]);
  expect({ code, stderr }).toMatchObject({ code: 125, stderr: expect.stringContaining("code: provider_mismatch") });
});

test("an agent that is not installed, or that there is not, begins no build", async () => {
  const local = { SANDBOX_PROVIDER: "local", SLIPWAY_SIMULATION_SPEED: undefined, SLIPWAY_AGENTS: "/nope" };
  await using parts = new AsyncDisposableStack();
  const own = parts.use(await openBin({ ...server, ...local }));
  parts.defer(async () => void (await own.run(["down"])));
  for (const [agent, expected] of [
    ["claude-code", /npm install --prefix \/nope\/claude-code .*code: component_missing/s],
    ["acp:emacs", /acp:codex.*code: unknown_agent/s],
  ] as const) {
    const { code, stderr } = await own.run(["build", "--yes", "--agent", agent, "a shop"]);
    expect({ code, stderr }).toMatchObject({ code: 125, stderr: expect.stringMatching(expected) });
  }
  expect(await own.run(["builds", "--json"])).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\[\]\s*$/) });
});

test("down --pause leaves nothing at work, and says what it did", async () => {
  const client = createClient({ socketPath: join(slipway.stateDir, serverFiles.socket) });
  const { id } = await client.builds.start({ request: "a garden planner", hold: "intent" });
  const { code, stdout } = await slipway.run(["down", "--pause"]);
  expect({ code, stdout }).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(
      new RegExp(`^${id} is paused; resume it with: slipway resume ${id}\nserver \\(process \\d+\\) stopped\n$`),
    ),
  });
});
