import type { Command, OptionSpecs } from "../../input/command.ts";

const group = "Builds";
const idArgument = { name: "id", help: "the build's id, or a beginning or an end of one" };
const newest = { ...idArgument, help: `${idArgument.help} (the newest build)`, optional: true };

const orderOptions: OptionSpecs = {
  mode: {
    value: "new|feature|fix",
    short: "m",
    help: "A new app, a feature of a repository, or its repair (feature with a repository, else new)",
  },
  dir: { value: "path", short: "d", help: "The repository's directory, for feature and fix (this one)" },
  repo: { value: "url|path", help: "A git repository to clone, or the path of one" },
  partition: { value: "phase|feature|component", help: "What tasks are cut by (feature)" },
  budget: { value: "usd", short: "b", help: "What the build may cost at most, in US dollars (BUILD_BUDGET_USD)" },
  inject: {
    value: "host:header=value",
    multiple: true,
    help: "A credential for a service of the app, added to requests by https outside of the sandboxes; env:NAME as value takes it from this environment, http:// before the host adds it to plain requests instead, in clear text",
  },
};
const buildExits =
  "Exit codes: 0 it succeeded, 1 it failed, 2 it was cancelled, 3 it is paused and waits, 4 it goes on without you; 125 when planning or Slipway failed.";

export const buildCommands: readonly Command[] = [
  {
    name: "build",
    group,
    summary: "Turn a request into an app that runs, and watch it grow",
    arguments: [{ name: "request", help: "what you want, in words", many: true }],
    options: {
      ...orderOptions,
      parallel: { value: "number", short: "p", help: "Sandboxes that work at the same time (MAX_PARALLEL_SANDBOXES)" },
      agent: { value: "name", help: "Who works on the tasks: builtin, claude-code or acp:<name> (builtin)" },
      workers: { value: "number", help: "Workers that the lead of a task may hand parts to, up to 4 (0)" },
      provider: { value: "name", help: "What the sandboxes must be of (SANDBOX_PROVIDER)" },
      yes: { short: "y", help: "Ask nothing: lock the intent and carry out the plan as they are made" },
    },
    notes: [
      "On a terminal the intent and the plan are shown and asked for before work starts. Ctrl-C asks whether to detach, pause or cancel; a second one detaches. The server drives the build: closing the terminal changes nothing.",
      "With --json every event is one line, and the last line is the result.",
      buildExits,
    ],
    examples: [
      'build "a shared shopping list"',
      'build --yes --budget 20 --parallel 4 "a shop for my pottery"',
      'build --repo ./shop "let customers leave a review"',
      'build --inject api.example.com:authorization=env:API_AUTHORIZATION "a weather page"',
      'build --mode fix --repo https://example.com/shop.git "the tests fail"',
    ],
    load: () => import("./build.ts"),
  },
  {
    name: "watch",
    group,
    summary: "Come back to a build and watch it as `slipway build` does",
    arguments: [newest],
    options: {},
    notes: ["With --json every new event is one line, and the last line is the result.", buildExits],
    load: async () => ({ run: (await import("./build.ts")).watch }),
  },
  {
    name: "plan",
    group,
    summary: "Turn a request into a locked intent and a plan, and stop there",
    arguments: [{ name: "request", help: "what you want, in words", many: true }],
    options: {
      ...orderOptions,
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
    name: "merge-queue",
    group,
    summary: "Show what waits to be merged, and how far each is with its gates",
    arguments: [newest],
    options: {},
    notes: ["Gates: ✓ passed, ✗ failed, ▸ runs, ! could not be run, · still to come."],
    load: () => import("./merge-queue.ts"),
  },
  {
    name: "branches",
    group,
    summary: "List the branches that a build keeps of its attempts, or discard one",
    arguments: [newest],
    options: {
      discard: { value: "branch", help: "Remove this one: its ref, or an end of it" },
    },
    notes: [
      "Each is a ref of the build's repository: git fetch <repository> <ref>.",
      "Work that is not on main is kept when the build ends, until it is discarded here.",
    ],
    examples: ["branches", "branches --discard 7f3q 4kx2"],
    load: () => import("./branches.ts"),
  },
  {
    name: "preview",
    group,
    summary: "Tell where a build's main is to be seen, and show it there; or close that",
    arguments: [newest],
    options: { close: { help: "End what runs for it and what its address lets in, until it is asked for again" } },
    notes: ["What is shown follows main while the build runs, and stays when it has ended, unless it was cancelled."],
    examples: ["preview", "preview --close 4kx2"],
    load: () => import("./preview.ts"),
  },
  {
    name: "up",
    group: "Upkeep",
    summary: "Start the server that builds are driven by, in the background",
    arguments: [],
    options: {},
    notes: [
      "Commands that need a server start one, too, when none runs. Its log is server.log in the state directory.",
      "Builds go on where they were when a server starts again.",
    ],
    load: () => import("../server/up.ts"),
  },
  {
    name: "down",
    group: "Upkeep",
    summary: "End the server in order",
    arguments: [],
    options: { pause: { help: "Pause the builds that it drives first: nothing of them runs any more" } },
    notes: [
      "Without --pause builds are handed over: their sandboxes go on, and the next server on this state directory goes on with them. Another one on the same database takes over what has no main yet.",
    ],
    load: () => import("../server/down.ts"),
  },
  {
    name: "server",
    group: "Upkeep",
    summary: "Run the server that builds are driven by, in the foreground",
    arguments: [],
    options: {},
    notes: ["SIGTERM and Ctrl-C end it as `slipway down` does."],
    load: () => import("../server/server.ts"),
  },
];
