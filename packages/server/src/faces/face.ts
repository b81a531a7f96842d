import type { ParametersOf, Route, StreamEnd } from "@slipway/contract";
import type { z } from "zod";
import type { Principal } from "./principal.ts";

/** What is behind a group of routes: one method for each, which is told who asks. */
export type Face<Group extends Readonly<Record<string, Route>>> = {
  [Name in keyof Group]: (by: Principal, ...given: Given<Group[Name]>) => Promise<Answer<Group[Name]>>;
};

/**
 * The parameters of the path, and the query or the body. `key` makes what is sent twice count once; without one, each call
 * counts. `signal` ends a stream.
 */
export type Given<R extends Route> = [
  ...ParametersOf<R["path"]>,
  ...Content<R>,
  ...(R extends { events: z.ZodType } ? [signal: AbortSignal] : [key?: string]),
];

type Content<R extends Route> = R extends { body: infer S extends z.ZodType }
  ? [body: z.output<S>]
  : R extends { query: infer S extends z.ZodType }
    ? [query: z.output<S>]
    : [];

/** A stream fails before it begins, and ends without a last word when its signal aborts. */
export type Answer<R extends Route> = R extends { events: infer S extends z.ZodType }
  ? AsyncGenerator<z.output<S>, StreamEnd | undefined>
  : R extends { output: infer S extends z.ZodType }
    ? z.output<S>
    : never;
