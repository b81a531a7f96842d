import {
  type BranchesView,
  type BranchId,
  type BranchView,
  type BuildId,
  type BuildOrderName,
  type BuildStatus,
  type BuildsPage,
  type BuildView,
  branchesViewSchema,
  branchViewSchema,
  buildsPageSchema,
  buildViewSchema,
  type CostsView,
  costsViewSchema,
  type EventsPage,
  type EventView,
  eventsPageSchema,
  type FileQuery,
  type FilesQuery,
  type FilesView,
  type FileView,
  filesViewSchema,
  fileViewSchema,
  type Health,
  healthSchema,
  type IntentEdit,
  type IntentView,
  idempotencyHeader,
  intentViewSchema,
  type MergeQueueView,
  mergeQueueViewSchema,
  newId,
  type PlanView,
  type PreviewView,
  planViewSchema,
  previewViewSchema,
  SlipwayError,
  type StartBuild,
} from "@slipway/contract";
import type { z } from "zod";
import { type FollowOptions, followEvents } from "./events.ts";
import { failureOf, type Outgoing, overNetwork, send, type Transport } from "./transport.ts";

/** A server of this machine, or one on the network. */
export type ServerAddress = { readonly socketPath: string } | { readonly url: string; readonly token: string };

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

/** What a server offers. What fails is a `SlipwayError` with the server's code, or `server_unavailable`. */
export interface Client {
  health(options?: CallOptions): Promise<Health>;
  readonly builds: BuildsClient;
}

export interface BuildsClient {
  /** With an id of the caller's, a call that is made again answers the build that is there. */
  start(build: StartBuild, options?: CallOptions): Promise<BuildView>;
  get(build: BuildId, options?: CallOptions): Promise<BuildView>;
  /** Newest first. */
  list(filter?: BuildsFilter, options?: CallOptions): Promise<BuildsPage>;
  intent(build: BuildId, options?: CallOptions): Promise<IntentView>;
  editIntent(build: BuildId, edit: IntentEdit, options?: OrderOptions): Promise<IntentView>;
  lock(build: BuildId, options?: CallOptions): Promise<BuildView>;
  plan(build: BuildId, options?: CallOptions): Promise<PlanView>;
  costs(build: BuildId, options?: CallOptions): Promise<CostsView>;
  mergeQueue(build: BuildId, options?: CallOptions): Promise<MergeQueueView>;
  branches(build: BuildId, options?: CallOptions): Promise<BranchesView>;
  /** Answers what it has discarded. */
  discardBranch(build: BuildId, branch: BranchId, options?: CallOptions): Promise<BranchView>;
  /** Shows main, also where its preview was closed. */
  openPreview(build: BuildId, options?: CallOptions): Promise<PreviewView>;
  /** Until it is opened again. */
  closePreview(build: BuildId, options?: CallOptions): Promise<PreviewView>;
  /** Of main, now or at a commit; all of them, or what differs from an earlier commit. */
  files(build: BuildId, range?: FilesRange, options?: CallOptions): Promise<FilesView>;
  file(build: BuildId, file: FileQuery, options?: CallOptions): Promise<FileView>;
  events(build: BuildId, range?: EventsRange, options?: CallOptions): Promise<EventsPage>;
  /** Every event after the given one, once and in order, until the build has ended. A lost connection is made anew. */
  follow(build: BuildId, options?: FollowOptions): AsyncIterable<EventView>;
  pause(build: BuildId, options?: OrderOptions): Promise<BuildView>;
  resume(build: BuildId, options?: OrderOptions): Promise<BuildView>;
  cancel(build: BuildId, options?: OrderOptions): Promise<BuildView>;
  setBudget(build: BuildId, budgetMicroUsd: number, options?: BudgetOptions): Promise<BuildView>;
}

export interface OrderOptions extends CallOptions {
  /** An order that is sent again under its key counts once. */
  readonly key?: string | undefined;
}

export interface BudgetOptions extends OrderOptions {
  /** The build also goes on, whatever it was paused for. */
  readonly resume?: boolean;
}

export interface BuildsFilter {
  readonly statuses?: readonly BuildStatus[];
  readonly project?: string;
  readonly before?: BuildId;
  readonly limit?: number;
}

export interface EventsRange {
  readonly after?: number;
  readonly limit?: number;
}

export type FilesRange = Partial<FilesQuery>;

export function createClient(address: ServerAddress): Client {
  const transport = transportTo(address);
  const call = createCall(transport);
  const get = <S extends z.ZodType>(path: string, schema: S, options: CallOptions = {}) =>
    call({ method: "GET", path, ...options }, schema);
  const post = <S extends z.ZodType>(path: string, schema: S, options: Sent = {}) =>
    call({ method: "POST", path, ...options }, schema);
  const patch = <S extends z.ZodType>(path: string, schema: S, options: Sent = {}) =>
    call({ method: "PATCH", path, ...options }, schema);
  const remove = <S extends z.ZodType>(path: string, schema: S, options: CallOptions = {}) =>
    call({ method: "DELETE", path, ...options }, schema);
  const ordering = (order: BuildOrderName) => (build: BuildId, options?: OrderOptions) =>
    post(`${pathOf(build)}/${order}`, buildViewSchema, options);
  return {
    health: (options) => get("/v1/health", healthSchema, options),
    builds: {
      start: (build, options) =>
        post("/v1/builds", buildViewSchema, { ...options, content: { id: newId("bld"), ...build } }),
      get: (build, options) => get(pathOf(build), buildViewSchema, options),
      list: ({ statuses, ...filter } = {}, options) =>
        get(`/v1/builds${queryOf({ ...filter, status: statuses?.join(",") || undefined })}`, buildsPageSchema, options),
      intent: (build, options) => get(`${pathOf(build)}/intent`, intentViewSchema, options),
      editIntent: (build, content, options) =>
        patch(`${pathOf(build)}/intent`, intentViewSchema, { ...options, content }),
      lock: (build, options) => post(`${pathOf(build)}/lock`, buildViewSchema, options),
      plan: (build, options) => get(`${pathOf(build)}/plan`, planViewSchema, options),
      costs: (build, options) => get(`${pathOf(build)}/costs`, costsViewSchema, options),
      mergeQueue: (build, options) => get(`${pathOf(build)}/merge-queue`, mergeQueueViewSchema, options),
      branches: (build, options) => get(`${pathOf(build)}/branches`, branchesViewSchema, options),
      discardBranch: (build, branch, options) =>
        remove(`${pathOf(build)}/branches/${encodeURIComponent(branch)}`, branchViewSchema, options),
      openPreview: (build, options) => post(`${pathOf(build)}/preview`, previewViewSchema, options),
      closePreview: (build, options) => remove(`${pathOf(build)}/preview`, previewViewSchema, options),
      files: (build, range = {}, options) =>
        get(`${pathOf(build)}/files${queryOf({ ...range })}`, filesViewSchema, options),
      file: (build, file, options) =>
        get(`${pathOf(build)}/files/content${queryOf({ ...file })}`, fileViewSchema, options),
      events: (build, range = {}, options) =>
        get(`${pathOf(build)}/events${queryOf({ ...range })}`, eventsPageSchema, options),
      follow: (build, options = {}) => followEvents(transport, build, options),
      pause: ordering("pause"),
      resume: ordering("resume"),
      cancel: ordering("cancel"),
      setBudget: (build, budgetMicroUsd, { resume = false, ...options } = {}) =>
        patch(`${pathOf(build)}/budget`, buildViewSchema, { ...options, content: { budgetMicroUsd, resume } }),
    },
  };
}

/** Node's own modules are loaded where a socket is used: the rest runs in a browser. */
function transportTo(address: ServerAddress): Transport {
  if ("url" in address) return overNetwork(address.url, address.token);
  const loaded = import("./socket.ts").then(({ overSocket }) => overSocket(address.socketPath));
  return async (request) => (await loaded)(request);
}

interface Sent extends OrderOptions {
  readonly content?: unknown;
}

function createCall(transport: Transport) {
  return async <S extends z.ZodType>(
    { method, path, signal, content, key }: Pick<Outgoing, "method" | "path"> & Sent,
    schema: S,
  ): Promise<z.output<S>> => {
    const headers = {
      accept: "application/json",
      ...(content !== undefined && { "content-type": "application/json" }),
      ...(key !== undefined && { [idempotencyHeader]: key }),
    };
    const body = content === undefined ? undefined : JSON.stringify(content);
    const answer = await send(transport, { method, path, headers, body, signal });
    const value = await answer.json().catch((cause) => {
      throw failureOf(cause, signal);
    });
    const read = schema.safeParse(value);
    if (read.success) return read.data;
    const message = `the server's answer to ${method} ${path} is not understood; is it of another version?`;
    throw new SlipwayError("internal", message, { cause: read.error });
  };
}

function pathOf(build: BuildId): string {
  return `/v1/builds/${encodeURIComponent(build)}`;
}

function queryOf(fields: Readonly<Record<string, string | number | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) query.set(name, String(value));
  return query.size === 0 ? "" : `?${query}`;
}
