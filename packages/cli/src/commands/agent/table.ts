import type { Command } from "../../input/command.ts";
import { networkOptions } from "../options.ts";

export const agentCommands: readonly Command[] = [
  {
    name: "agent run",
    group: "Agents",
    summary: "Run a coding agent in a sandbox on a copy of a directory, and offer what it changed",
    arguments: [{ name: "prompt", help: "what the agent is to do, in words", many: true }],
    options: {
      agent: {
        value: "name",
        short: "a",
        help: "builtin, claude-code, acp:opencode, acp:codex, acp:gemini, or acp:<name> of one that you describe (builtin)",
      },
      model: {
        value: "provider/model",
        short: "m",
        help: "The model (SLIPWAY_MODEL_BUILD); scripted/demo needs no key",
      },
      dir: { value: "path", short: "d", help: "The directory to work on a copy of (this one)" },
      repo: { value: "url", help: "A git repository to clone instead; name its host with --net" },
      budget: { value: "usd", short: "b", help: "What the models may cost at most, in US dollars (5)" },
      workers: { value: "number", help: "Workers that the lead may hand tasks to, up to 4 (0)" },
      permissions: { value: "allow|ask", help: "Whether the agent asks before it writes or runs something (allow)" },
      timeout: { value: "duration", help: "How long it may take (1h)" },
      apply: { help: "Apply the changes of a completed run without asking" },
      "no-apply": { help: "Only show the changes" },
      keep: { help: "Keep the sandbox" },
      ...networkOptions,
    },
    notes: [
      "The sandbox reaches models through Slipway alone and never holds a key. It has no network unless --net or --registries open one.",
      "While it works: a line you type is a message to the agent, Ctrl-C interrupts it, a second Ctrl-C cancels the run.",
      "Exit codes: 0 when the agent completed; 1 when it ended in another way, which is named; 125 when Slipway failed.",
    ],
    examples: [
      'agent run --model scripted/demo "say hello"',
      'agent run --agent claude-code --budget 2 "make the tests pass"',
      'agent run --workers 3 --registries "add a settings page"',
    ],
    load: () => import("./agent-run.ts"),
  },
];
