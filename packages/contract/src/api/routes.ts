import { rulingSchema } from "../builds/dispute.ts";
import { intentEditSchema } from "../builds/intent.ts";
import { buildViewSchema } from "../builds/view.ts";
import { eventViewSchema } from "../events/build.ts";
import {
  buildsPageSchema,
  buildsQuerySchema,
  costsViewSchema,
  eventsPageSchema,
  eventsQuerySchema,
  setBudgetSchema,
  startBuildSchema,
} from "./builds.ts";
import { disputesViewSchema, disputeViewSchema } from "./disputes.ts";
import {
  branchesViewSchema,
  branchViewSchema,
  fileQuerySchema,
  filesQuerySchema,
  filesViewSchema,
  fileViewSchema,
  mergeQueueViewSchema,
  previewViewSchema,
} from "./files.ts";
import { intentViewSchema, planViewSchema } from "./plans.ts";
import type { Route } from "./route.ts";
import { healthSchema } from "./server.ts";

const read = { method: "GET", scope: "builds:read" } as const;
const make = { method: "POST", scope: "builds:change" } as const;
const change = { method: "PATCH", scope: "builds:change" } as const;
const remove = { method: "DELETE", scope: "builds:change" } as const;
const build = "/v1/builds/:build";
const order = { ...make, output: buildViewSchema, errors: ["build_ended"] } as const;
const preview = {
  path: `${build}/preview`,
  output: previewViewSchema,
  errors: ["build_ended", "capability_missing"],
} as const;

/** Every route of the server, by group and name. Server, client and tests are made from it. */
export const routes = {
  server: { health: { method: "GET", path: "/v1/health", scope: "server:read", output: healthSchema } },
  builds: {
    /** With an id of the caller's, a call that is made again answers the build that is there. */
    start: {
      ...make,
      path: "/v1/builds",
      body: startBuildSchema,
      output: buildViewSchema,
      status: 201,
      errors: ["idempotency_conflict", "provider_mismatch", "mode_unavailable", "component_missing", "unknown_agent"],
    },
    /** Newest first. */
    list: { ...read, path: "/v1/builds", query: buildsQuerySchema, output: buildsPageSchema },
    get: { ...read, path: build, output: buildViewSchema },
    intent: { ...read, path: `${build}/intent`, output: intentViewSchema, errors: ["not_ready"] },
    /** While the build waits for its user. */
    editIntent: {
      ...change,
      path: `${build}/intent`,
      body: intentEditSchema,
      output: intentViewSchema,
      errors: ["not_ready", "intent_locked"],
    },
    /** Lets a build that waits for it lock its intent and continue. */
    lock: { ...make, path: `${build}/lock`, output: buildViewSchema, errors: ["not_ready"] },
    plan: { ...read, path: `${build}/plan`, output: planViewSchema, errors: ["not_ready"] },
    costs: { ...read, path: `${build}/costs`, output: costsViewSchema },
    mergeQueue: { ...read, path: `${build}/merge-queue`, output: mergeQueueViewSchema },
    /** Checks that work kept failing, with what was decided about them. */
    disputes: { ...read, path: `${build}/disputes`, output: disputesViewSchema },
    /** Decides one that waits for the user. */
    settleDispute: {
      ...make,
      path: `${build}/disputes/:dispute`,
      body: rulingSchema,
      output: disputeViewSchema,
      errors: ["build_ended", "dispute_settled"],
    },
    /** What is kept of attempts' work. */
    branches: { ...read, path: `${build}/branches`, output: branchesViewSchema },
    /** Answers what it has discarded. `branch_in_use` while its attempt or the merge queue has it. */
    discardBranch: {
      ...remove,
      path: `${build}/branches/:branch`,
      output: branchViewSchema,
      errors: ["branch_in_use"],
    },
    /** Shows main, also where its preview was closed. */
    openPreview: { ...make, ...preview, errors: [...preview.errors, "not_ready"] },
    /** Until it is opened again. */
    closePreview: { ...remove, ...preview },
    /** Of main, now or at a commit; all of them, or what differs from an earlier commit. */
    files: {
      ...read,
      path: `${build}/files`,
      query: filesQuerySchema,
      output: filesViewSchema,
      errors: ["not_ready", "commit_not_found"],
    },
    file: {
      ...read,
      path: `${build}/files/content`,
      query: fileQuerySchema,
      output: fileViewSchema,
      errors: ["not_ready", "commit_not_found", "file_not_found", "not_a_file"],
    },
    /** What has happened and what does, until the build has ended; for who accepts a stream. Fails as `events` does. */
    follow: { ...read, path: `${build}/events`, query: eventsQuerySchema, events: eventViewSchema },
    /** `invalid_request` when the build's events end before `after`. */
    events: { ...read, path: `${build}/events`, query: eventsQuerySchema, output: eventsPageSchema },
    /** Orders answer soon, with what they have changed by then. */
    pause: { ...order, path: `${build}/pause` },
    resume: { ...order, path: `${build}/resume` },
    cancel: { ...order, path: `${build}/cancel` },
    /** `invalid_budget` for one that is spent already. */
    setBudget: {
      ...change,
      path: `${build}/budget`,
      body: setBudgetSchema,
      output: buildViewSchema,
      errors: ["build_ended", "invalid_budget"],
    },
  },
} as const satisfies Record<string, Record<string, Route>>;

export type BuildRoutes = typeof routes.builds;
