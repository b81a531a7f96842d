import { mkdir, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hasCode } from "@slipway/contract";
import { expect, it } from "vitest";
import { agentsDirectory } from "./testing/site.ts";
import { agentTool, installedTools, toolDirectories } from "./tools.ts";

it("a run of the built-in agent has Node and the runner", async () => {
  const directories = await toolDirectories("builtin", "/nowhere");
  expect(Object.keys(directories)).toEqual(["node", "runner"]);
  await stat(join(directories["node"] ?? "", "node"));
  await stat(join(directories["runner"] ?? "", "runner.mjs"));
});

it("a run of another agent has that one's directory, too", async () => {
  expect(await toolDirectories("acp:codex", agentsDirectory)).toMatchObject({ codex: join(agentsDirectory, "codex") });
  expect(agentTool("claude-code")).toBe("claude-code");
});

it("the error about a missing agent lists the installed ones and how to install it", async () => {
  const agents = await mkdtemp(join(tmpdir(), "agents-"));
  await mkdir(join(agents, "codex"));
  await expect(toolDirectories("claude-code", agents)).rejects.toMatchObject({
    code: "component_missing",
    message: `the agent claude-code is not installed (installed: builtin, acp:codex); to install it: npm install --prefix ${agents}/claude-code @anthropic-ai/claude-code`,
  });
  await rm(agents, { recursive: true });
});

it("an agent that its directory describes is available, also among known ones, and replaces none", async () => {
  const agents = await mkdtemp(join(tmpdir(), "agents-"));
  await mkdir(join(agents, "node"));
  const description = { command: ["x"], environment: { URL: "{base_url}", API_KEY: "{token}" } };
  await writeFile(join(agents, "node", "agent.json"), JSON.stringify(description));
  const { node, ...others } = await installedTools(agents);
  expect(others).toMatchObject({ "acp-node": join(agents, "node") });
  expect(node).not.toContain(agents);
  expect(agentTool("acp:node")).toBe("acp-node");
  await expect(toolDirectories("acp:emacs", agents)).rejects.toMatchObject({
    code: "unknown_agent",
    message: expect.stringMatching(/There is no agent acp:emacs. Known are .*acp:codex, .*acp:node/),
  });
  await rm(agents, { recursive: true });
});

it("the error about an unknown agent lists the known ones", async () => {
  await expect(toolDirectories("acp:emacs", agentsDirectory)).rejects.toSatisfy(
    (error) => hasCode(error, "unknown_agent") && error.message.includes("codex"),
  );
});
