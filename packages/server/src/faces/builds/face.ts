import type {
  BranchesView,
  BranchId,
  BranchView,
  BuildId,
  BuildOrderName,
  BuildsPage,
  BuildsQuery,
  BuildView,
  CostsView,
  EventsPage,
  EventView,
  FileQuery,
  FilesQuery,
  FilesView,
  FileView,
  IntentView,
  MergeQueueView,
  PlanView,
  PreviewView,
  SetBudget,
  StartBuildOutput,
} from "@slipway/contract";

/** What faces ask of builds. `key` makes what is sent twice count once; without one, each call counts. */
export interface BuildFace {
  /**
   * Fails with `provider_mismatch` for a build that wants another provider than the server has, and with `component_missing` or
   * `unknown_agent` for one that wants an agent that the server has not.
   */
  start(account: string, wanted: StartBuildOutput): Promise<BuildView>;
  get(build: BuildId): Promise<BuildView>;
  /** Newest first. */
  list(query: BuildsQuery): Promise<BuildsPage>;
  /** Fails with `build_ended`. Answers soon, with what the order has changed by then. */
  order(build: BuildId, given: BuildOrderName, key?: string): Promise<BuildView>;
  /** Fails with `invalid_budget` for one that is spent already. */
  setBudget(build: BuildId, wanted: SetBudget, key?: string): Promise<BuildView>;
  intent(build: BuildId): Promise<IntentView>;
  /** Fails with `not_ready` before the draft, and with `intent_locked` once the build does not wait for the user any more. */
  editIntent(build: BuildId, edit: unknown, key?: string): Promise<IntentView>;
  /** Lets a build that waits for it lock its intent and go on. */
  lock(build: BuildId): Promise<BuildView>;
  plan(build: BuildId): Promise<PlanView>;
  costs(build: BuildId): Promise<CostsView>;
  mergeQueue(build: BuildId): Promise<MergeQueueView>;
  /** What is kept of attempts' work. */
  branches(build: BuildId): Promise<BranchesView>;
  /** Fails with `branch_not_found`, and with `branch_in_use` while its attempt or the merge queue has it. */
  discardBranch(build: BuildId, branch: BranchId): Promise<BranchView>;
  /** Shows main, also where the preview was closed. Fails with `not_ready` before there is one, and with `build_ended` for one that was cancelled. */
  openPreview(build: BuildId): Promise<PreviewView>;
  /** Until it is opened again. */
  closePreview(build: BuildId): Promise<PreviewView>;
  /** Of main. Fails with `not_ready` before there is one, and with `commit_not_found` for a commit that main never had. */
  files(build: BuildId, query: FilesQuery): Promise<FilesView>;
  /** Fails with `file_not_found` and `not_a_file` too. */
  file(build: BuildId, query: FileQuery): Promise<FileView>;
  /** Fails with `invalid_request` when the build's events end before `after`. */
  events(build: BuildId, after: number, limit: number): Promise<EventsPage>;
  /** What has happened and what does, until the build has ended or the signal aborts. Fails as `events` does. */
  follow(build: BuildId, after: number, signal: AbortSignal): AsyncIterable<EventView>;
}
