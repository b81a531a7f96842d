import type { Command } from "../../input/command.ts";
import { idArgument, imageOptions } from "../options.ts";

export const maintenanceCommands: readonly Command[] = [
  {
    name: "sandbox events",
    summary: "Show sandbox events",
    arguments: [{ ...idArgument, optional: true }],
    options: {
      follow: { short: "f", help: "Keep printing new events until Ctrl-C" },
      after: { value: "sequence", help: "Only events after this sequence number", default: "0" },
    },
    notes: ["With --json, prints one event per line."],
    load: () => import("./events.ts"),
  },
  {
    name: "sandbox image build",
    summary: "Build an image before its first use",
    arguments: [{ name: "image", help: "Base image, as with --image", optional: true }],
    options: imageOptions,
    examples: ["sandbox image build node24", "sandbox image build --image debian --apt ripgrep --npm typescript@7.0.2"],
    load: () => import("./image.ts"),
  },
  {
    name: "sandbox reconcile",
    aliases: ["sandbox gc"],
    summary: "Compare running sandboxes with the records: adopt or end orphans, remove unused layers",
    load: () => import("./reconcile.ts"),
  },
];

export const machineCommands: readonly Command[] = [
  {
    name: "up",
    summary: "Start the server in the background",
    notes: [
      "Commands that need a server start one if none is running. It logs to server.log in the state directory.",
      "Builds continue where they left off when a server starts again.",
    ],
    load: () => import("../server/up.ts"),
  },
  {
    name: "down",
    summary: "Shut the server down",
    options: { pause: { help: "Pause its builds first, so that nothing of them keeps running" } },
    notes: [
      "Without --pause, builds are handed over: their sandboxes keep running, and the next server on this state directory continues them. A server on another state directory but the same database takes over builds that have no main yet.",
    ],
    load: () => import("../server/down.ts"),
  },
  {
    name: "server",
    summary: "Run the server in the foreground",
    notes: ["SIGTERM and Ctrl-C shut it down as `slipway down` does."],
    load: () => import("../server/server.ts"),
  },
  {
    name: "deploy modal",
    summary: "Build the image on Modal and prove the account with a test sandbox",
    options: { "dry-run": { help: "Check the account, and say what a deploy does and costs" } },
    notes: [
      "Uses Modal's credentials from the environment, whatever SANDBOX_PROVIDER is. Ends its test sandboxes and deletes its snapshot in every case, and an image that it built if a step fails.",
      "Exit codes: 0 deployed; 1 not deployed, with nothing left; 2 something is left, which the message names; 125 wrong settings, or Slipway failed.",
    ],
    examples: ["deploy modal --dry-run", "deploy modal --json"],
    load: () => import("../deploy/deploy.ts"),
  },
  {
    name: "doctor",
    summary: "Check whether this machine can run sandboxes, and say what to fix",
    notes: ["Exits with 1 if a check fails."],
    load: () => import("./doctor.ts"),
  },
];
