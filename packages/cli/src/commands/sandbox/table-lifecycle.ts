import type { Command } from "../../input/command.ts";
import { idArgument, imageOptions, sandboxOptions } from "../options.ts";

const group = "Sandboxes";
const states = "creating, running, sleeping, stopped or error";

export const lifecycleCommands: readonly Command[] = [
  {
    name: "sandbox create",
    group,
    summary: "Create a sandbox and print its id",
    arguments: [],
    options: {
      ...imageOptions,
      snapshot: { value: "snapshot-id", help: "Start from this snapshot's files" },
      user: { value: "agent|root", help: "Who programs run as inside (agent)" },
      ...sandboxOptions,
    },
    notes: ["It has no network unless --net or --registries say so."],
    examples: [
      "sandbox create",
      "sandbox create --name web --memory 2g --lifetime 4h --registries",
      "sandbox create --image debian --apt ripgrep --net api.example.com,192.0.2.0/24",
    ],
    load: () => import("./create.ts"),
  },
  {
    name: "sandbox list",
    group,
    summary: "List sandboxes",
    arguments: [],
    options: {
      all: { short: "a", help: "Also those that are stopped or failed" },
      state: { value: "state", multiple: true, help: `Only ${states}` },
      label: { value: "key=value", multiple: true, help: "Only with this label" },
      quiet: { short: "q", help: "Print ids only" },
    },
    load: () => import("./list.ts"),
  },
  {
    name: "sandbox info",
    group,
    summary: "Show all about one sandbox",
    arguments: [idArgument],
    options: {},
    load: () => import("./info.ts"),
  },
  {
    name: "sandbox fork",
    group,
    summary: "Create a sandbox with another one's files and print its id",
    arguments: [idArgument],
    options: sandboxOptions,
    notes: ["What no option changes is taken over from the first one."],
    load: () => import("./fork.ts"),
  },
  {
    name: "sandbox sleep",
    group,
    summary: "Freeze a sandbox; its next use wakes it",
    arguments: [idArgument],
    options: {},
    load: async () => ({ run: (await import("./transitions.ts")).sleep }),
  },
  {
    name: "sandbox wake",
    group,
    summary: "Wake a sleeping sandbox",
    arguments: [idArgument],
    options: {},
    load: async () => ({ run: (await import("./transitions.ts")).wake }),
  },
  {
    name: "sandbox stop",
    group,
    summary: "End a sandbox's programs and keep its files",
    arguments: [idArgument],
    options: {},
    load: async () => ({ run: (await import("./transitions.ts")).stop }),
  },
  {
    name: "sandbox start",
    group,
    summary: "Start a stopped sandbox",
    arguments: [idArgument],
    options: {},
    load: async () => ({ run: (await import("./transitions.ts")).start }),
  },
  {
    name: "sandbox keep-alive",
    group,
    summary: "Extend a sandbox's lifetime",
    arguments: [idArgument, { name: "duration", help: "at least this long from now, for instance 2h" }],
    options: {},
    notes: ["No sandbox lives past 24 hours from its creation."],
    load: () => import("./keep-alive.ts"),
  },
  {
    name: "sandbox rm",
    aliases: ["sandbox destroy"],
    group,
    summary: "Destroy sandboxes with their programs and files, and print what is proven gone",
    arguments: [{ ...idArgument, optional: true, many: true }],
    options: { all: { short: "a", help: "All sandboxes" } },
    load: () => import("./rm.ts"),
  },
];
