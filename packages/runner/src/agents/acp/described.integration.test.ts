import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { endOf } from "../../testing/end.ts";
import { driverOf } from "../index.ts";
import { play, startPlace, testAgents, unending } from "../program/testing.ts";
import { describedAgents } from "./described.ts";

let agents: string;
beforeEach(async () => {
  agents = await mkdtemp(join(tmpdir(), "described-"));
});
afterEach(() => rm(agents, { recursive: true }));

const environment = { OPENAI_BASE_URL: "{base_url}/v1", OPENAI_API_KEY: "{token}", MODEL: "{model}" };

async function describeAgent(name: string, description: unknown): Promise<void> {
  await mkdir(join(agents, name), { recursive: true });
  await writeFile(
    join(agents, name, "agent.json"),
    typeof description === "string" ? description : JSON.stringify(description),
  );
}

it("only directories with a description are agents", async () => {
  await describeAgent("ours", { command: ["ours", "--acp"], environment });
  await describeAgent("a-second-one", { command: ["bin/second"], environment });
  await mkdir(join(agents, "codex"));
  await writeFile(join(agents, "notes.txt"), "");
  expect((await describedAgents(agents, [])).map(({ name }) => name)).toEqual(["a-second-one", "ours"]);
  expect(await describedAgents(join(agents, "nowhere"), [])).toEqual([]);
});

it.each<[string, unknown, string]>([
  ["no JSON", "{", '"command"'],
  ["nothing but a list", [], '"command"'],
  ["no command", { environment }, "command"],
  ["an empty command", { command: [], environment }, "command"],
  ["a program elsewhere", { command: ["/usr/bin/env"], environment }, "a file of the agent's directory"],
  ["a program above", { command: ["bin/../../x"], environment }, "a file of the agent's directory"],
  ["a NUL", { command: ["x", "a\0b"], environment }, "has a NUL"],
  ["too many words", { command: Array(65).fill("x"), environment }, "up to 64 words"],
  ["a long word", { command: ["x", "y".repeat(5000)], environment }, "command: 1"],
  ["the token as an argument", { command: ["x", "--key={token}"], environment }, "{token} belongs into"],
  ["no environment", { command: ["x"] }, "environment"],
  ["no address", { command: ["x"], environment: { A: "{token}" } }, "no variable has {base_url}"],
  ["no token", { command: ["x"], environment: { A: "{base_url}" } }, "no variable has {token}"],
  ["a mistyped name", { command: ["x"], environment: { ...environment, M: "{modle}" } }, "no {modle}, but {base_url}"],
  [
    "our own variable",
    { command: ["x"], environment: { ...environment, SLIPWAY_X: "1" } },
    "SLIPWAY_X: Slipway sets it",
  ],
  ["the home", { command: ["x"], environment: { ...environment, HOME: "/" } }, "HOME: Slipway"],
  ["no variable", { command: ["x"], environment: { ...environment, "A=B": "1" } }, "A=B: this is not"],
  ["a key", { command: ["x"], environment: { ...environment, OTHER_API_KEY: "sk-123" } }, "OTHER_API_KEY: expected"],
  ["what nobody knows", { command: ["x"], environment, dialect: "chat" }, "dialect"],
])("a description with %s is refused", async (_, description, message) => {
  await describeAgent("ours", description);
  const refusal = await describedAgents(agents, []).catch((error) => error);
  expect(refusal).toMatchObject({ code: "invalid_settings", message: expect.stringContaining(message) });
  expect(refusal.message).toContain(join(agents, "ours", "agent.json"));
  expect(refusal.message).not.toContain("sk-123");
});

it("taken names, invalid names and files that are too large are reported together", async () => {
  const right = { command: ["x"], environment };
  await describeAgent("codex", right);
  await describeAgent("Ours", right);
  await describeAgent("large", { ...right, filler: "x".repeat(70_000) });
  await expect(describedAgents(agents, ["codex"])).rejects.toMatchObject({
    code: "invalid_settings",
    message: expect.stringMatching(/^3 settings are wrong:.*Ours.*small letters.*codex.*another name.*large.*65536/s),
  });
});

it("OpenCode works with a description as it does without one", { timeout: 600_000 }, async () => {
  const provider = {
    npm: "@ai-sdk/openai-compatible",
    options: { baseURL: "{base_url}/v1", apiKey: "{token}" },
    models: { "{model}": { tool_call: true } },
  };
  await describeAgent("acp-mine", {
    command: [`node_modules/opencode-linux-${process.arch}/bin/opencode`, "acp"],
    environment: {
      OPENCODE_CONFIG_CONTENT: JSON.stringify({ model: "slipway/{model}", provider: { slipway: provider } }),
      OPENCODE_DISABLE_MODELS_FETCH: "1",
      OPENCODE_DISABLE_AUTOUPDATE: "1",
    },
  });
  await using place = await startPlace(
    ({ step }) => (step === 0 ? { actions: [{ write: "hello.txt", content: "hello" }] } : { text: "Done." }),
    agents,
  );
  await symlink(join(testAgents, "opencode", "node_modules"), join(agents, "acp-mine", "node_modules"));
  await using agent = await place.open(driverOf("acp:mine", place.surroundings));
  const events = await play(agent.turn("Say hello", unending));
  expect(endOf(events)).toEqual({ reason: "completed", message: "Done." });
  expect(await readFile(join(place.workdir, "hello.txt"), "utf8")).toBe("hello");
  expect(JSON.stringify(place.requests[0]?.request)).toContain("Instructions for every agent.\\n\\nSay hello");
});
