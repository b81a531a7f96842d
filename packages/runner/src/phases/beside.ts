import { setTimeout as delay } from "node:timers/promises";
import type { Finding } from "@slipway/contract";
import { keepEndsOf } from "../system/output.ts";
import type { Failure } from "./checks.ts";

/**
 * Looks at what agents commit while they work, and checks it. The checks are no steps: what they find is found again in the
 * phases that follow.
 */
export interface BesideChecks {
  /**
   * Checks what is looked at during the work, and ends with it: a check that is under way then is ended, so that nothing of
   * it is left.
   */
  during<T>(work: () => Promise<T>): Promise<T>;
  /** There may be another commit. Answers at once. */
  look(): void;
}

export interface BesideOptions {
  /** The last commit of the branch. */
  tip(): string;
  /** With what agents have committed by themselves. */
  latest(): Promise<string>;
  /** There is another one. Waits for no check. */
  onCommit(commit: string): Promise<void>;
  check(commit: string, signal: AbortSignal): Promise<Failure | null>;
  /** Once for failures that are the same, until the checks pass again. */
  onFailure(failure: Failure, commit: string): void;
}

/** What the kernel holds for longer is given up. */
const endMs = 30_000;

/** One check at a time; the newest commit is next. */
export function createBesideChecks({ tip, latest, onCommit, check, onFailure }: BesideOptions): BesideChecks {
  const told = new Set<string>();
  let look = () => {};

  /** Believed the second time: the agent may have had the same port, or the same file in /tmp. */
  const failureOf = async (commit: string, signal: AbortSignal) => {
    const failure = await check(commit, signal);
    return failure === null || told.has(failure.signature) ? failure : await check(commit, signal);
  };

  const begin = (signal: AbortSignal) => {
    let known = tip();
    let checked = known;
    const checking = oneAtATime(signal, async () => {
      if (checked === known) return;
      const commit = known;
      checked = commit;
      const failure = await failureOf(commit, signal);
      if (signal.aborted) return;
      if (failure === null) return told.clear();
      if (!told.has(failure.signature)) onFailure(failure, commit);
      told.add(failure.signature);
    });
    const looking = oneAtATime(signal, async () => {
      const commit = await latest();
      if (commit === known) return;
      known = commit;
      checking.ask();
      await onCommit(commit);
    });
    return { look: looking.ask, settled: () => Promise.all([looking.settled(), checking.settled()]) };
  };

  return {
    async during(work) {
      const over = new AbortController();
      const begun = begin(over.signal);
      look = begun.look;
      try {
        return await work();
      } finally {
        look = () => {};
        over.abort();
        await Promise.race([begun.settled(), delay(endMs, undefined, { ref: false })]);
      }
    },
    look: () => look(),
  };
}

/** What is asked for while the work is done is done once more. */
function oneAtATime(signal: AbortSignal, work: () => Promise<void>) {
  let isWanted = false;
  let running: Promise<void> | undefined;
  const run = async () => {
    try {
      while (isWanted && !signal.aborted) {
        isWanted = false;
        await work();
      }
    } catch {
      // What fails here fails in the phases that follow, and is told there.
    } finally {
      running = undefined;
    }
  };
  return {
    ask() {
      isWanted = true;
      running ??= run();
    },
    settled: async () => await running,
  };
}

const maxFindingBytes = 7 * 1024;

export function findingOf({ command, text }: Failure, commit: string): Finding {
  const said = `\`${command}\` fails in a clean checkout of ${commit.slice(0, 12)}:\n${text}`;
  return { gate: "verify", text: keepEndsOf(said, maxFindingBytes) };
}
