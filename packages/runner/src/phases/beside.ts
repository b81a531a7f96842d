import type { Finding } from "@slipway/contract";
import { keepEndsOf } from "../output.ts";
import type { Failure } from "./checks.ts";

/** Checks of what agents commit while they work. They are no steps: what they find is found again in the phases that follow. */
export interface BesideChecks {
  /** Checks what is looked at during the work, and ends with it: a check that is under way then is given up. */
  during<T>(work: () => Promise<T>): Promise<T>;
  /** There may be another commit. Answers at once. */
  look(): void;
}

export interface BesideOptions {
  /** The last commit of the branch. */
  tip(): string;
  /** With what agents have committed by themselves. */
  latest(): Promise<string>;
  check(commit: string, signal: AbortSignal): Promise<Failure | null>;
  /** Once for failures that are the same, until the checks pass again. */
  onFailure(failure: Failure, commit: string): void;
}

/** One check at a time; the newest commit is next. */
export function createBesideChecks({ tip, latest, check, onFailure }: BesideOptions): BesideChecks {
  const told = new Set<string>();
  let look = () => {};

  const begin = (signal: AbortSignal) => {
    let known = tip();
    let isWanted = false;
    let isLooking = false;
    const followUp = async () => {
      while (isWanted && !signal.aborted) {
        isWanted = false;
        const commit = await latest();
        if (commit === known) continue;
        [known, isWanted] = [commit, true];
        const failure = await check(commit, signal);
        if (signal.aborted) return;
        if (failure === null) told.clear();
        else if (!told.has(failure.signature)) onFailure(failure, commit);
        if (failure !== null) told.add(failure.signature);
      }
    };
    return () => {
      isWanted = true;
      if (isLooking) return;
      isLooking = true;
      const done = () => {
        isLooking = false;
      };
      // What fails here fails in the phases that follow, and is told there.
      followUp().then(done, done);
    };
  };

  return {
    async during(work) {
      const over = new AbortController();
      look = begin(over.signal);
      try {
        return await work();
      } finally {
        look = () => {};
        over.abort();
      }
    },
    look: () => look(),
  };
}

const maxFindingBytes = 7 * 1024;

export function findingOf({ command, text }: Failure, commit: string): Finding {
  const said = `\`${command}\` fails in a clean checkout of ${commit.slice(0, 12)}:\n${text}`;
  return { gate: "verify", text: keepEndsOf(said, maxFindingBytes) };
}
