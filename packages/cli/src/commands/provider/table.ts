import type { Command } from "../../input/command.ts";
import { idArgument, imageOptions } from "../options.ts";

const group = "Upkeep";

export const providerCommands: readonly Command[] = [
  {
    name: "sandbox events",
    group,
    summary: "Show what has happened to sandboxes",
    arguments: [{ ...idArgument, optional: true }],
    options: {
      follow: { short: "f", help: "Go on with what happens until Ctrl-C" },
      after: { value: "sequence", help: "Only events after this one (0)" },
    },
    notes: ["With --json every event is one line."],
    load: () => import("./events.ts"),
  },
  {
    name: "sandbox image build",
    group,
    summary: "Build an image ahead of its first use",
    arguments: [{ name: "image", help: "as --image", optional: true }],
    options: imageOptions,
    examples: ["sandbox image build node24", "sandbox image build --image debian --apt ripgrep --npm typescript@7.0.2"],
    load: () => import("./image.ts"),
  },
  {
    name: "sandbox reconcile",
    aliases: ["sandbox gc"],
    group,
    summary: "Compare what runs with what is recorded; adopt or end strays, remove unused layers",
    arguments: [],
    options: {},
    load: () => import("./reconcile.ts"),
  },
  {
    name: "doctor",
    group,
    summary: "Check whether this machine can run sandboxes, and say what to do",
    arguments: [],
    options: {},
    notes: ["Exits with 1 when something fails."],
    load: () => import("./doctor.ts"),
  },
];
