import { maxPage } from "@slipway/engine";
import type { Kysely, Transaction } from "kysely";
import type { Tables } from "./rows.ts";

export type Queries = Kysely<Tables>;
export type Trx = Transaction<Tables>;

export interface Clock {
  now(): number;
}

/** Several reads of one moment. They neither wait for writers nor block them. */
export function readOnce<T>(queries: Queries, read: (trx: Trx) => Promise<T>): Promise<T> {
  return queries.transaction().setAccessMode("read only").setIsolationLevel("repeatable read").execute(read);
}

interface LoosePage {
  readonly offset?: number | undefined;
  readonly limit?: number | undefined;
}

export function pageOf({ offset = 0, limit = maxPage }: LoosePage = {}) {
  return { offset: Math.max(0, Math.trunc(offset)), limit: Math.min(Math.max(0, Math.trunc(limit)), maxPage) };
}
