import { setTimeout as delay } from "node:timers/promises";
import type { Finding } from "@slipway/contract";
import { keepEndsOf } from "../system/output.ts";
import type { Failure } from "./checks.ts";

/** Checks what agents commit while they work. These checks are not steps: the following phases find the same again. */
export interface BesideChecks {
  /** Checks commits during the work. Its end also ends a check under way, so that nothing of it is left. */
  during<T>(work: () => Promise<T>): Promise<T>;
  /** Signals that there may be another commit. Returns at once. */
  look(): void;
}

export interface BesideOptions {
  /** The last commit of the branch. */
  tip(): string;
  /** The last commit, including the agents' own. */
  latest(): Promise<string>;
  /** Called for a new commit, without waiting for a check. */
  onCommit(commit: string): Promise<void>;
  check(commit: string, signal: AbortSignal): Promise<Failure | null>;
  /** Called once for the same failure, until the checks pass again. */
  onFailure(failure: Failure, commit: string): void;
}

/** Gives up waiting for what the kernel holds longer. */
const endMs = 30_000;

/** Runs one check at a time. The newest commit is next. */
export function createBesideChecks({ tip, latest, onCommit, check, onFailure }: BesideOptions): BesideChecks {
  const told = new Set<string>();
  let look = () => {};

  /** Believes a failure only the second time: the agent may have used the same port, or the same file in /tmp. */
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

/** A request during the work repeats the work once. */
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
      // The following phases find and report the same failure.
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
