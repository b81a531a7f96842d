import type { Command, OptionSpecs } from "../../input/command.ts";
import { injectOption } from "../options.ts";

const idArgument = { name: "id", help: "Build ID, or a unique start or end of it" };
const newest = { ...idArgument, help: `${idArgument.help} (default: the newest build)`, optional: true };
const request = { name: "request", help: "What you want, in plain words", many: true };

const orderOptions: OptionSpecs = {
  mode: {
    value: "new|feature|fix",
    short: "m",
    help: "Build a new app, add a feature to a repository, or fix one",
    default: "feature with a repository, else new",
  },
  dir: { value: "path", short: "d", help: "Directory of the repository, for feature and fix", default: "this one" },
  repo: { value: "url|path", help: "Git repository to clone" },
  partition: { value: "phase|feature|component", help: "How to divide the work into tasks", default: "feature" },
  budget: { value: "usd", short: "b", help: "Limit for model costs, in US dollars", default: "BUILD_BUDGET_USD" },
  inject: injectOption,
};
const buildExits =
  "Exit codes: 0 succeeded, 1 failed, 2 cancelled, 3 paused, 4 still running after you detached, 125 planning or Slipway failed.";

const order = (name: "pause" | "resume" | "cancel") => async () => ({ run: (await import("./orders.ts"))[name] });

export const buildCommands: readonly Command[] = [
  {
    name: "build",
    summary: "Build an app from a request and watch the progress",
    arguments: [request],
    options: {
      ...orderOptions,
      parallel: {
        value: "number",
        short: "p",
        help: "Sandboxes that work at the same time",
        default: "MAX_PARALLEL_SANDBOXES",
      },
      agent: { value: "name", help: "Agent: builtin, claude-code or acp:<name>", default: "builtin" },
      workers: { value: "number", help: "Workers that the lead of a task may hand parts to, 0 to 4", default: "0" },
      "build-mode": {
        value: "local|modal",
        help: "Where the sandboxes must be: on this machine, or on Modal",
        default: "the server's SANDBOX_PROVIDER",
      },
      yes: { short: "y", help: "Lock the intent and carry out the plan without asking" },
    },
    notes: [
      "On a terminal, asks you to confirm the intent and the plan before work starts.",
      "Ctrl-C asks whether to detach, pause or cancel; a second Ctrl-C detaches. The server drives the build, so closing the terminal does not stop it.",
      "With --json, prints one event per line; the last line is the result.",
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
    summary: "Return to a build and watch its progress",
    arguments: [newest],
    notes: ["With --json, prints one new event per line; the last line is the result.", buildExits],
    load: async () => ({ run: (await import("./build.ts")).watch }),
  },
  {
    name: "plan",
    summary: "Turn a request into a locked intent and a plan, without building",
    arguments: [request],
    options: {
      ...orderOptions,
      edit: { short: "e", help: "Open the intent in $EDITOR before it is locked" },
      out: {
        value: "path",
        short: "o",
        help: "Directory for slipway-intent.json and slipway-plan.json",
        default: ".slipway/<id>",
      },
    },
    notes: [
      "The build stays paused; `slipway resume <id>` carries the plan out. Planning continues if you leave with Ctrl-C.",
      "Exit codes: 0 planned; 1 paused or cancelled without a plan; 125 a stage or Slipway failed.",
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
    summary: "List builds, newest first",
    options: {
      status: {
        value: "status",
        multiple: true,
        help: "Only planning, running, paused, succeeded, failed or cancelled",
      },
      limit: { value: "number", short: "n", help: "Number of builds, 1 to 100", default: "20" },
      quiet: { short: "q", help: "Print IDs only" },
    },
    load: () => import("./builds.ts"),
  },
  {
    name: "status",
    summary: "Show a build's tasks, sandboxes and costs",
    arguments: [newest],
    load: () => import("./status.ts"),
  },
  {
    name: "logs",
    summary: "Show a build's events",
    arguments: [newest],
    options: {
      follow: { short: "f", help: "Keep printing new events until the build ends" },
      after: { value: "sequence", help: "Only events after this sequence number", default: "0" },
    },
    notes: [
      "With --json, prints one event per line.",
      "With --follow, exits with 0 if the build succeeds and with 1 if it fails or is cancelled. Ctrl-C stops the output, not the build.",
    ],
    load: () => import("./logs.ts"),
  },
  { name: "pause", summary: "Pause a build", arguments: [idArgument], load: order("pause") },
  {
    name: "resume",
    summary: "Resume a paused or held build",
    arguments: [idArgument],
    options: { budget: { value: "usd", short: "b", help: "Set the build's total budget, in US dollars" } },
    examples: ["resume --budget 50 4kx2"],
    load: order("resume"),
  },
  { name: "cancel", summary: "Cancel a build", arguments: [idArgument], load: order("cancel") },
  {
    name: "merge-queue",
    summary: "Show the merge queue and the gates of each candidate",
    arguments: [newest],
    notes: ["Gates: ✓ passed, ✗ failed, ▸ running, ! could not run, · not yet run."],
    load: () => import("./merge-queue.ts"),
  },
  {
    name: "disputes",
    summary: "List checks that work keeps failing, or decide whether one is wrong",
    arguments: [newest],
    options: {
      settle: { value: "number", help: "Decide the dispute of this number" },
      wrong: { value: "app|check", help: "What is wrong; needed with --settle" },
      because: { value: "text", help: "Why, in one sentence of at most 500 characters; needed with --settle" },
    },
    notes: [
      "Shows the hidden check step by step, with ✗ at the step that fails. You decide a dispute that waits for you: others are decided by a model.",
      "If the app is wrong, its work goes back with your sentence: agents read it, so name what is missing, not what the check enters. If the check is wrong, it is compiled anew, and the work is checked again.",
    ],
    examples: ["disputes", 'disputes --settle 1 --wrong check --because "nothing says that lists are sorted" 4kx2'],
    load: () => import("./disputes.ts"),
  },
  {
    name: "branches",
    summary: "List the branches that a build keeps, or discard one",
    arguments: [newest],
    options: { discard: { value: "branch", help: "Remove this branch: its ref, or a unique end of it" } },
    notes: [
      "Each branch is a ref of the build's repository: git fetch <repository> <ref>.",
      "Work that is not on main stays after the build ends, until you discard it.",
    ],
    examples: ["branches", "branches --discard 7f3q 4kx2"],
    load: () => import("./branches.ts"),
  },
  {
    name: "preview",
    summary: "Print, open or close a build's preview",
    arguments: [newest],
    options: { close: { help: "Stop the preview and revoke its URL until it is opened again" } },
    notes: ["The preview follows main while the build runs, and stays after it ends unless the build was cancelled."],
    examples: ["preview", "preview --close 4kx2"],
    load: () => import("./preview.ts"),
  },
];
