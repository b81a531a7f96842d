import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { maxEndCharacters } from "@slipway/contract";
import { expect, it } from "vitest";
import { endOf } from "../../testing/end.ts";
import { play, startPlace, unending } from "../program/testing.ts";
import type { AcpAgent } from "./agent.ts";
import { acpAgent } from "./agents.ts";
import { createAcpDriver } from "./driver.ts";

const fixture = fileURLToPath(new URL("agent-fixture.ts", import.meta.url));

/** The fixture in the place of a known agent, found like one. */
function misbehaving(mode: string): AcpAgent {
  return {
    name: "fixture",
    program: { directory: ".", files: [], command: "node", packages: ["node"] },
    launch: (_options, { file }) => ({ argv: [file, fixture, mode], env: {}, files: {} }),
  };
}

async function turnOf(mode: string, state?: unknown) {
  await using place = await startPlace();
  await using agent = await place.open(createAcpDriver(misbehaving(mode), place.surroundings), { state });
  const events = await play(agent.turn("Begin", unending));
  return { events, end: endOf(events), state: place.state };
}

it("the error about an unknown agent names the known ones", () => {
  expect(() => acpAgent("nobody")).toThrow(
    expect.objectContaining({
      code: "unknown_agent",
      message: expect.stringContaining("acp:codex, acp:gemini, acp:opencode"),
    }),
  );
});

it("the error about a missing agent says what to install", async () => {
  await using place = await startPlace(undefined, "/nonexistent");
  await expect(place.open(createAcpDriver(acpAgent("opencode"), place.surroundings))).rejects.toMatchObject({
    code: "component_missing",
    message: expect.stringContaining("opencode-ai"),
  });
});

it("lines outside the protocol are ignored", async () => {
  expect((await turnOf("garbage")).end).toMatchObject({ reason: "completed" });
});

it("texts are cut to the contract's sizes", async () => {
  const { end } = await turnOf("long");
  expect(end.message.length).toBe(maxEndCharacters);
});

it("an update of an unannounced call starts it", async () => {
  const { events } = await turnOf("unannounced");
  expect(events.filter((event) => event.type === "tool")).toEqual([
    { type: "tool", phase: "start", id: "call-1", name: "touch file", kind: "edit", input: '{"path":"file"}' },
    { type: "tool", phase: "end", id: "call-1", name: "touch file", kind: "edit", ok: false, output: "no such file" },
  ]);
});

it("edits of one file are distinguished by what they write", async () => {
  const { events } = await turnOf("edits");
  const outputs = events.flatMap((event) => (event.type === "tool" && event.phase === "end" ? [event.output] : []));
  expect(outputs).toHaveLength(3);
  expect(new Set(outputs).size).toBe(2);
});

it("a plan is an event", async () => {
  const { events } = await turnOf("plan");
  expect(events).toContainEqual({ type: "plan", entries: [{ text: "First", status: "in_progress" }] });
});

it("an answer at the model's limit is truncated, and a refusal refused", async () => {
  expect((await turnOf("max_tokens")).end).toMatchObject({ reason: "truncated" });
  expect((await turnOf("refusal")).end).toMatchObject({ reason: "refused" });
});

it("a program that ends before it speaks or in the middle is a crash", async () => {
  expect((await turnOf("exit")).end).toMatchObject({
    reason: "crashed",
    message: expect.stringContaining("exit code 7"),
  });
  expect((await turnOf("die")).end).toMatchObject({
    reason: "crashed",
    message: expect.stringContaining("SIGKILL"),
  });
});

it("a program that runs on after closing its output is ended, and did not crash", async () => {
  expect((await turnOf("mute")).end).toMatchObject({ reason: "internal" });
});

it.each(["history", "late history"])("the %s of a loaded conversation is not reported again", async (mode) => {
  const { events } = await turnOf(mode, { session: "session-1" });
  expect(JSON.stringify(events)).not.toContain("said long ago");
});

it("an agent that cannot resume conversations reports this one as lost and begins another", async () => {
  await using place = await startPlace();
  const state = { session: "session-0" };
  await using agent = await place.open(createAcpDriver(misbehaving(""), place.surroundings), { state });
  expect(endOf(await play(agent.turn("Go on", unending)))).toMatchObject({ reason: "session_lost" });
  expect(endOf(await play(agent.turn("Begin", unending)))).toMatchObject({ reason: "completed" });
  expect(place.state).toEqual({ session: "session-1" });
});

it("an agent that ignores a cancel is ended with its processes", async () => {
  await using place = await startPlace();
  await using agent = await place.open(createAcpDriver(misbehaving("deaf"), place.surroundings));
  const cancel = new AbortController();
  const turn = agent.turn("Begin", { signal: cancel.signal });
  const events = await play(turn, (event) => event.type === "session" && cancel.abort());
  expect(endOf(events)).toEqual({ reason: "cancelled", message: "" });
  expect(await place.processes()).toEqual([]);
});

it("a turn that is cancelled before it begins starts nothing", async () => {
  await using place = await startPlace();
  await using agent = await place.open(createAcpDriver(misbehaving("deaf"), place.surroundings));
  expect(await play(agent.turn("Begin", { signal: AbortSignal.abort() }))).toEqual([
    { type: "ended", end: { reason: "cancelled", message: "" } },
  ]);
  expect(await place.processes()).toEqual([]);
});

it("an abandoned turn leaves no process", async () => {
  await using place = await startPlace();
  await using agent = await place.open(createAcpDriver(misbehaving("deaf"), place.surroundings));
  for await (const event of agent.turn("Begin", unending)) if (event.type === "session") break;
  expect(await place.processes()).toEqual([]);
});

it("agents find their models at the gateway and have a token instead of a key", async () => {
  await using place = await startPlace();
  await using _agent = await place.open(createAcpDriver(acpAgent("codex"), place.surroundings), {
    model: 'a "quoted" model',
  });
  const config = await readFile(`${place.surroundings.homesDirectory}/lead/.codex/config.toml`, "utf8");
  expect(config).toContain('model = "a \\"quoted\\" model"');
  expect(config).not.toContain("run-token");
});

it("Gemini CLI uses the run's model for small tasks, and its settings hold no token", async () => {
  await using place = await startPlace();
  await using _agent = await place.open(createAcpDriver(acpAgent("gemini"), place.surroundings), { model: "one" });
  const text = await readFile(`${place.surroundings.homesDirectory}/lead/.gemini/settings.json`, "utf8");
  expect(JSON.parse(text).modelConfigs.customOverrides).toMatchObject([{ modelConfig: { model: "one" } }]);
  expect(text).not.toContain("run-token");
});
