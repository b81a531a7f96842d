import type { Command } from "../../input/command.ts";
import { networkOptions } from "../options.ts";

export const agentCommands: readonly Command[] = [
  {
    name: "agent run",
    summary: "Run a coding agent in a sandbox on a copy of a directory, and offer its changes",
    arguments: [{ name: "prompt", help: "What the agent should do, in plain words", many: true }],
    options: {
      agent: {
        value: "name",
        short: "a",
        help: "Agent: builtin, claude-code, acp:opencode, acp:codex, acp:gemini, or acp:<name> of your own",
        default: "builtin",
      },
      model: {
        value: "provider/model",
        short: "m",
        help: "Model; scripted/demo needs no key",
        default: "SLIPWAY_MODEL_BUILD",
      },
      dir: { value: "path", short: "d", help: "Directory to copy and work on", default: "this one" },
      repo: { value: "url", help: "Git repository to clone instead; allow its host with --net" },
      budget: { value: "usd", short: "b", help: "Limit for model costs, in US dollars", default: "5" },
      workers: { value: "number", help: "Workers that the lead may hand tasks to, 0 to 4", default: "0" },
      permissions: {
        value: "allow|ask",
        help: "Allow writes and commands, or ask before each one",
        default: "allow",
      },
      timeout: { value: "duration", help: "Time limit, 1s to 23h", default: "1h" },
      apply: { help: "Apply the changes of a completed run without asking" },
      "no-apply": { help: "Show the changes without applying them" },
      keep: { help: "Keep the sandbox" },
      ...networkOptions,
    },
    notes: [
      "The sandbox reaches models only through Slipway and never holds a key. Its network is closed unless --net or --registries opens it.",
      "While the agent works, type a line to send it a message. Ctrl-C interrupts it; a second Ctrl-C cancels the run.",
      "Exit codes: 0 if the agent completed; 1 if it ended for another reason, which is printed; 125 if Slipway failed.",
    ],
    examples: [
      'agent run --model scripted/demo "say hello"',
      'agent run --agent claude-code --budget 2 "make the tests pass"',
      'agent run --workers 3 --registries "add a settings page"',
    ],
    load: () => import("./agent-run.ts"),
  },
];
