import { SlipwayError } from "@slipway/contract";
import { GitFailed } from "../git.ts";

/** One thing that is wrong, and where. */
export interface Finding {
  /** Null: it is about all of it. */
  readonly path: string | null;
  readonly message: string;
}

/** What came out of a sandbox is not taken. Nothing of it has reached the build's repository. */
export class CandidateRefused extends SlipwayError {
  readonly findings: readonly Finding[];

  constructor(findings: readonly Finding[], options?: ErrorOptions) {
    super("candidate_refused", findings.map(toText).join("; "), options);
    this.findings = findings;
  }
}

export function refuse(message: string, path: string | null = null): CandidateRefused {
  return new CandidateRefused([{ path, message }]);
}

/** A git that fails on what a sandbox has made says no, be it by a crash. */
export async function asRefusal<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof GitFailed)) throw error;
    throw new CandidateRefused([{ path: null, message: `${what}: ${error.message}` }], { cause: error });
  }
}

/** Paths are shown as JSON: what is wrong with one may be what it does to a terminal. */
export function toText({ path, message }: Finding): string {
  return path === null ? message : `${JSON.stringify(path)} ${message}`;
}
