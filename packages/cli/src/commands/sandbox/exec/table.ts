import type { Command } from "../../../input/command.ts";
import { execArgument, idArgument, networkOptions, streamOptions } from "../../options.ts";

const programs = "Programs";
const network = "Ports and network";

export const programCommands: readonly Command[] = [
  {
    name: "sandbox exec",
    group: programs,
    summary: "Run a program in a sandbox and exit as it does",
    arguments: [idArgument],
    program: "required",
    options: {
      ...streamOptions,
      cwd: { value: "path", short: "w", help: "Directory to start in (the sandbox's workdir)" },
      env: { value: "name=value", short: "e", multiple: true, help: "Variable; a name alone takes it from here" },
      timeout: { value: "duration|never", help: "Killed after this long (300s; never with --tty or --detach)" },
      detach: { short: "d", help: "Leave it running and print its exec id" },
    },
    notes: [
      "Exit codes: the program's own; 128 + n when signal n ended it; 124 after a timeout; 125 when Slipway failed.",
      "Ctrl-C interrupts the program, a second one kills it with all it has started.",
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
    group: programs,
    summary: "Open an interactive shell (bash, or sh where there is none)",
    arguments: [idArgument],
    options: {
      cwd: { value: "path", short: "w", help: "Directory to start in (the sandbox's workdir)" },
      env: { value: "name=value", short: "e", multiple: true, help: "Variable; a name alone takes it from here" },
    },
    load: () => import("./shell.ts"),
  },
  {
    name: "sandbox attach",
    group: programs,
    summary: "Follow an exec's output, from its first byte or a given one, and exit as it does",
    arguments: [idArgument, execArgument],
    options: {
      ...streamOptions,
      "from-stdout": { value: "bytes", help: "Leave out this much of standard output (0)" },
      "from-stderr": { value: "bytes", help: "Leave out this much of standard error (0)" },
    },
    notes: ["Ctrl-C lets go of the exec; it goes on."],
    load: () => import("./attach.ts"),
  },
  {
    name: "sandbox execs",
    group: programs,
    summary: "List a sandbox's execs",
    arguments: [idArgument],
    options: {},
    load: () => import("./execs.ts"),
  },
  {
    name: "sandbox kill",
    group: programs,
    summary: "End an exec with all it has started",
    arguments: [idArgument, execArgument],
    options: {
      grace: { value: "duration", help: "Time between TERM and KILL" },
      signal: { value: "name", short: "s", help: "Only send this signal, for instance SIGHUP" },
    },
    load: () => import("./kill.ts"),
  },
  {
    name: "sandbox url",
    group: network,
    summary: "Print the address of a port, with its access token",
    arguments: [idArgument, { name: "port", help: "the port inside (SANDBOX_PREVIEW_PORT, 3000)", optional: true }],
    options: {},
    load: () => import("./url.ts"),
  },
  {
    name: "sandbox forward",
    group: network,
    summary: "Make a port of a sandbox reachable on this machine until Ctrl-C",
    arguments: [idArgument, { name: "port", help: "the port inside" }],
    options: { listen: { value: "port", short: "l", help: "Port on 127.0.0.1 (the same one; 0 for any free one)" } },
    load: () => import("./forward.ts"),
  },
  {
    name: "sandbox network",
    group: network,
    summary: "Replace what a sandbox may reach",
    arguments: [idArgument],
    options: networkOptions,
    notes: ["The whole policy is replaced: --net none closes everything."],
    load: () => import("../network.ts"),
  },
];
