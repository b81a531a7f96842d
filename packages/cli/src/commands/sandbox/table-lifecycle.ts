import type { Command } from "../../input/command.ts";
import { idArgument, imageOptions, sandboxOptions, storageOptions } from "../options.ts";

const transition = (name: "sleep" | "wake" | "stop" | "start") => async () => ({
  run: (await import("./transitions.ts"))[name],
});

export const lifecycleCommands: readonly Command[] = [
  {
    name: "sandbox create",
    summary: "Create a sandbox and print its ID",
    options: {
      ...imageOptions,
      snapshot: { value: "snapshot-id", help: "Start from the files of this snapshot" },
      ...storageOptions,
      user: { value: "agent|root", help: "User that programs run as inside", default: "agent" },
      ...sandboxOptions,
    },
    notes: [
      "The network is closed unless --net or --registries opens it.",
      "Files of the storage are copied in; `slipway storage sync` or `sandbox rm --sync` makes a version of them.",
    ],
    examples: [
      "sandbox create",
      "sandbox create --name web --memory 2g --lifetime 4h --registries",
      "sandbox create --workspace s3://my-bucket/app --volume ann/shop --shared",
      "sandbox create --image debian --apt ripgrep --net api.example.com,192.0.2.0/24",
    ],
    load: () => import("./create.ts"),
  },
  {
    name: "sandbox list",
    summary: "List sandboxes",
    options: {
      all: { short: "a", help: "Include stopped and failed sandboxes" },
      state: { value: "state", multiple: true, help: "Only creating, running, sleeping, stopped or error" },
      label: { value: "key=value", multiple: true, help: "Only sandboxes with this label" },
      quiet: { short: "q", help: "Print IDs only" },
    },
    load: () => import("./list.ts"),
  },
  {
    name: "sandbox info",
    summary: "Show a sandbox's details",
    arguments: [idArgument],
    load: () => import("./info.ts"),
  },
  {
    name: "sandbox fork",
    summary: "Create a sandbox with a copy of another one's files and print its ID",
    arguments: [idArgument],
    options: Object.fromEntries(
      Object.entries(sandboxOptions).map(([name, { default: _, ...option }]) => [name, option]),
    ),
    notes: ["Without an option, the setting of the source sandbox applies."],
    load: async () => ({ run: (await import("./create.ts")).fork }),
  },
  {
    name: "sandbox sleep",
    summary: "Freeze a sandbox; the next use wakes it",
    arguments: [idArgument],
    load: transition("sleep"),
  },
  { name: "sandbox wake", summary: "Wake a sleeping sandbox", arguments: [idArgument], load: transition("wake") },
  {
    name: "sandbox stop",
    summary: "End a sandbox's programs and keep its files",
    arguments: [idArgument],
    load: transition("stop"),
  },
  { name: "sandbox start", summary: "Start a stopped sandbox", arguments: [idArgument], load: transition("start") },
  {
    name: "sandbox keep-alive",
    summary: "Extend a sandbox's lifetime",
    arguments: [idArgument, { name: "duration", help: "Minimum time from now, for example 2h" }],
    notes: ["A sandbox lives at most 24 hours from its creation."],
    load: () => import("./keep-alive.ts"),
  },
  {
    name: "sandbox rm",
    aliases: ["sandbox destroy"],
    summary: "Destroy sandboxes with their programs and files, and print receipts",
    arguments: [{ ...idArgument, optional: true, many: true }],
    options: {
      all: { short: "a", help: "Destroy all sandboxes" },
      sync: {
        help: "First keep the files that came from the storage as a new version; if that fails, destroy nothing",
      },
    },
    load: () => import("./rm.ts"),
  },
];
