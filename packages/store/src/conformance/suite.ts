import { afterEach, beforeEach, describe } from "vitest";
import { describeBuilds } from "./builds.ts";
import { openTestStore } from "./context.ts";
import { describeEvents } from "./events.ts";
import { describeLeases } from "./leases.ts";
import { describeLedger } from "./ledger.ts";
import { describeLogs } from "./logs.ts";
import { describeNotes } from "./notes.ts";
import { describeProcesses } from "./processes.ts";
import type { OpenedStore, StoreSubject } from "./subject.ts";
import { describeTurns } from "./turns.ts";

const suites = [
  describeBuilds,
  describeEvents,
  describeTurns,
  describeLeases,
  describeLedger,
  describeLogs,
  describeNotes,
];

/** What every database has to pass under the store; or a part of it. */
export function describeStore(name: string, subject: StoreSubject, parts = suites): void {
  describe(`the store on ${name}`, () => {
    let current: OpenedStore | undefined;
    const opened = (): OpenedStore => {
      if (current === undefined) throw new Error("no store is open");
      return current;
    };
    beforeEach(async () => {
      current = await openTestStore(await subject.createDatabase());
    });
    afterEach(async () => {
      await current?.[Symbol.asyncDispose]();
      current = undefined;
    });

    for (const describePart of parts) describePart(opened);
    if (subject.seesDeath) describeProcesses(opened);
  });
}
