import type { Store } from "@slipway/engine";
import type { Database } from "../database/open.ts";

/** What a database's test hands to the suite. */
export interface StoreSubject {
  /** Called before each test: the address of an empty database. */
  createDatabase(): Promise<string>;
}

/** An opened store in a test. */
export interface OpenedStore extends AsyncDisposable {
  readonly url: string;
  readonly database: Database;
  readonly store: Store;
  readonly clock: TestClock;
}

export interface TestClock {
  now(): number;
  advance(ms: number): void;
}
