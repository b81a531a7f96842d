import type { Store } from "@slipway/engine";
import type { Database } from "../database/open.ts";

/** What a database's test hands to the suite. */
export interface StoreSubject {
  /** Called before each test: the address of an empty database. */
  createDatabase(): Promise<string>;
  /** Whether the transaction of a process ends with the process. Over HTTP it ends by a time limit of the server. */
  readonly seesDeath: boolean;
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
