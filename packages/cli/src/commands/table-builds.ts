import type { Command } from "../command.ts";

const group = "Builds";
const idArgument = { name: "id", help: "the build's id, or a beginning or an end of one" };
const newest = { ...idArgument, help: `${idArgument.help} (the newest build)`, optional: true };

export const buildCommands: readonly Command[] = [
  {
    name: "plan",
    group,
    summary: "Turn a request into a locked intent and a plan, and stop there",
    arguments: [{ name: "request", help: "what you want, in words", many: true }],
    options: {
      mode: { value: "new|feature|fix", short: "m", help: "A new app, a feature of a repository, or its repair (new)" },
      dir: { value: "path", short: "d", help: "The repository's directory, for feature and fix (this one)" },
      repo: { value: "url", help: "A git repository to clone instead" },
      partition: { value: "phase|feature|component", help: "How tasks are grouped (feature)" },
      budget: { value: "usd", short: "b", help: "What the build may cost at most, in US dollars (BUILD_BUDGET_USD)" },
      edit: { short: "e", help: "Open the intent in $EDITOR before it is locked" },
      out: { value: "path", short: "o", help: "Where slipway-intent.json and slipway-plan.json go (.slipway/<id>)" },
    },
    notes: [
      "The build stays paused: `slipway resume <id>` carries the plan out. Planning goes on when you leave it with Ctrl-C.",
      "Exit codes: 0 when there is a plan; 1 when the build waits, or was cancelled, without one; 125 when a stage or Slipway failed.",
    ],
    examples: [
      'plan "a habit tracker"',
      'plan --edit --budget 20 "a shop for my pottery"',
      'plan --mode fix --dir ./shop "the tests fail"',
    ],
    load: () => import("./plan.ts"),
  },
  {
    name: "builds",
    group,
    summary: "List builds, newest first",
    arguments: [],
    options: {
      status: {
        value: "status",
        multiple: true,
        help: "Only planning, running, paused, succeeded, failed or cancelled",
      },
      limit: { value: "number", short: "n", help: "How many at most (20)" },
      quiet: { short: "q", help: "Print ids only" },
    },
    load: () => import("./builds.ts"),
  },
  {
    name: "status",
    group,
    summary: "Show all about a build: its tasks, what runs, its money",
    arguments: [newest],
    options: {},
    load: () => import("./status.ts"),
  },
  {
    name: "logs",
    group,
    summary: "Show what has happened in a build",
    arguments: [newest],
    options: {
      follow: { short: "f", help: "Go on with what happens until the build ends" },
      after: { value: "sequence", help: "Only events after this one (0)" },
    },
    notes: [
      "With --json every event is one line.",
      "With --follow it exits with 0 when the build succeeds and with 1 when it fails or is cancelled. Ctrl-C ends the looking, not the build.",
    ],
    load: () => import("./logs.ts"),
  },
  {
    name: "pause",
    group,
    summary: "Let a build stand still; nothing is thrown away",
    arguments: [idArgument],
    options: {},
    load: async () => ({ run: (await import("./orders.ts")).pause }),
  },
  {
    name: "resume",
    group,
    summary: "Let a build go on: one that is paused, is planned only, or waits for its intent",
    arguments: [idArgument],
    options: { budget: { value: "usd", short: "b", help: "Set what the build may cost in all, in US dollars" } },
    examples: ["resume --budget 50 4kx2"],
    load: async () => ({ run: (await import("./orders.ts")).resume }),
  },
  {
    name: "cancel",
    group,
    summary: "End a build and all that it runs",
    arguments: [idArgument],
    options: {},
    load: async () => ({ run: (await import("./orders.ts")).cancel }),
  },
  {
    name: "server",
    group: "Upkeep",
    summary: "Run the server that builds are driven by, in the foreground",
    arguments: [],
    options: { stop: { help: "End the one that runs in the background instead" } },
    notes: [
      "Commands that need a server start one in the background when none runs; its log is server.log in the state directory.",
      "Builds go on where they were when a server starts again.",
    ],
    load: () => import("./server.ts"),
  },
];
