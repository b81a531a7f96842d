import { SlipwayError } from "@slipway/contract";
import { GitFailed } from "../git.ts";

/** One mistake and its place. */
export interface Finding {
  /** Null: it concerns the whole. */
  readonly path: string | null;
  readonly message: string;
}

/** Refuses a sandbox's data. None of it has reached the build's repository. */
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

/** Turns a failure of git on a sandbox's data, even a crash, into a refusal. */
export async function asRefusal<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof GitFailed)) throw error;
    throw new CandidateRefused([{ path: null, message: `${what}: ${error.message}` }], { cause: error });
  }
}

/** Shows paths as JSON, because a bad one may control a terminal. */
export function toText({ path, message }: Finding): string {
  return path === null ? message : `${JSON.stringify(path)} ${message}`;
}
