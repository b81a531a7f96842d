import type { Command } from "../../../input/command.ts";
import { execArgument, idArgument, networkOptions, startOptions, streamOptions } from "../../options.ts";

export const programCommands: readonly Command[] = [
  {
    name: "sandbox exec",
    summary: "Run a program in a sandbox and exit with its exit code",
    arguments: [idArgument],
    takesProgram: true,
    options: {
      ...streamOptions,
      ...startOptions,
      timeout: {
        value: "duration|never",
        help: "Kill the program after this long",
        default: "SLIPWAY_EXEC_TIMEOUT, 300s; never with --tty or --detach",
      },
      detach: { short: "d", help: "Leave it running and print its exec ID" },
    },
    notes: [
      "Exit codes: the program's own; 128 + n if signal n ended it; 124 after a timeout; 125 if Slipway failed.",
      "Ctrl-C interrupts the program; a second Ctrl-C kills its whole process tree.",
    ],
    examples: [
      "sandbox exec web -- npm test",
      "sandbox exec -it web -- bash",
      "sandbox exec -i web -- tar x < files.tar",
    ],
    load: () => import("./exec.ts"),
  },
  {
    name: "sandbox shell",
    summary: "Open an interactive shell (bash, or sh if there is no bash)",
    arguments: [idArgument],
    options: startOptions,
    load: async () => ({ run: (await import("./exec.ts")).shell }),
  },
  {
    name: "sandbox attach",
    summary: "Follow an exec's output, from the start or a byte offset, and exit with its exit code",
    arguments: [idArgument, execArgument],
    options: {
      ...streamOptions,
      "from-stdout": { value: "bytes", help: "Skip this much of standard output", default: "0" },
      "from-stderr": { value: "bytes", help: "Skip this much of standard error", default: "0" },
    },
    notes: ["Ctrl-C detaches; the exec keeps running."],
    load: async () => ({ run: (await import("./exec.ts")).attach }),
  },
  {
    name: "sandbox execs",
    summary: "List a sandbox's execs",
    arguments: [idArgument],
    load: () => import("./execs.ts"),
  },
  {
    name: "sandbox kill",
    summary: "Kill an exec and its whole process tree",
    arguments: [idArgument, execArgument],
    options: {
      grace: { value: "duration", help: "Time between SIGTERM and SIGKILL" },
      signal: { value: "name", short: "s", help: "Only send this signal, for example SIGHUP" },
    },
    load: () => import("./kill.ts"),
  },
];

export const networkCommands: readonly Command[] = [
  {
    name: "sandbox url",
    summary: "Print the URL of a port, with its access token",
    arguments: [
      idArgument,
      { name: "port", help: "Port inside the sandbox (default: SANDBOX_PREVIEW_PORT, 3000)", optional: true },
    ],
    load: async () => ({ run: (await import("./ports.ts")).url }),
  },
  {
    name: "sandbox forward",
    summary: "Forward a local port to a port of a sandbox until Ctrl-C",
    arguments: [idArgument, { name: "port", help: "Port inside the sandbox" }],
    options: {
      listen: { value: "port", short: "l", help: "Port on 127.0.0.1; 0 for any free one", default: "the same port" },
    },
    load: async () => ({ run: (await import("./ports.ts")).forward }),
  },
  {
    name: "sandbox network",
    summary: "Replace a sandbox's network policy",
    arguments: [idArgument],
    options: networkOptions,
    notes: ["The options replace the whole policy; --net none closes the network."],
    load: () => import("../network.ts"),
  },
];
