import { z } from "zod";
import type { ErrorCode } from "../base/errors.ts";
import { attemptIdSchema, buildIdSchema, candidateIdSchema } from "../base/ids.ts";

/** One way to ask the server. Its name is the face's method and the client's method. */
export interface Route {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** With the parameters below, in the order of the method's arguments. */
  readonly path: string;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodType;
  /** Of the answer. For a stream, `events` instead: the schema of each. */
  readonly output?: z.ZodType;
  readonly events?: z.ZodType;
  /** Of the answer, when it is not 200. */
  readonly status?: 201;
  readonly scope: Scope;
  /** What it may fail with beside what any request may: `unauthenticated`, `invalid_request`, `too_large`, and a missing id. */
  readonly errors?: readonly ErrorCode[];
}

/** What a principal needs: `change` includes `read`. */
export type Scope = "server:read" | "builds:read" | "builds:change";

/** A candidate's, or that of an attempt whose last commit is no candidate. */
export const branchIdSchema = z.union([candidateIdSchema, attemptIdSchema]);
export type BranchId = z.output<typeof branchIdSchema>;

const disputeNumberSchema = z
  .string()
  .regex(/^[1-9]\d{0,5}$/)
  .transform(Number);

/** Parameters of paths. An id that cannot be is answered as one that is not there. */
export const routeParameters = {
  build: { schema: buildIdSchema, missing: "build_not_found" },
  dispute: { schema: disputeNumberSchema, missing: "dispute_not_found" },
  branch: { schema: branchIdSchema, missing: "branch_not_found" },
} as const satisfies Record<string, { readonly schema: z.ZodType; readonly missing: ErrorCode }>;
export type RouteParameter = keyof typeof routeParameters;

/** The names of a path's parameters, in their order. */
export function parametersOf(path: string): RouteParameter[] {
  return Array.from(path.matchAll(/:(\w+)/g), ([, name]) => name as RouteParameter);
}

type ValueOf<Name> = Name extends RouteParameter ? z.output<(typeof routeParameters)[Name]["schema"]> : never;

/** What a path is made with. */
export type ParametersOf<Path extends string> = Path extends `${string}:${infer Rest}`
  ? Rest extends `${infer Name}/${infer More}`
    ? [ValueOf<Name>, ...ParametersOf<More>]
    : [ValueOf<Rest>]
  : [];

export const apiLimits = {
  maxBodyBytes: 1024 * 1024,
  maxBuildsPage: 100,
  maxEventsPage: 500,
  maxFilesPage: 1000,
  /** Of a file whose content is answered. */
  maxFileBytes: 1024 * 1024,
  /** Between two signs of life of a stream of events. */
  heartbeatMs: 15_000,
} as const;

/** The header that makes an order count once, however often it is sent. */
export const idempotencyHeader = "idempotency-key";
export const idempotencyKeySchema = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, "expected up to 64 letters and digits");

export const queryCount = (most: number, otherwise: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, "expected a whole number")
    .transform(Number)
    .pipe(z.int().min(1).max(most))
    .default(otherwise);

/** A number of an event; 0 is before the first. */
export const sequenceSchema = z
  .string()
  .regex(/^\d{1,15}$/, "expected the number of an event")
  .transform(Number);
