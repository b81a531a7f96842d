import { SlipwayError } from "@slipway/contract";
import { type Fault, namedFaults, type ScriptedProgram, type ScriptedRequest, type Turn } from "./program.ts";

const pattern = /\[fault:([^\s\]]+)(?: x(\d{1,6}))?(?: @(\d{1,6}))?\]/;

export interface OrderedFault {
  readonly fault: Fault;
  readonly faultTries?: number;
  /** The step at which it happens. Without it, every step. */
  readonly atStep?: number;
}

/** Parses a prompt's fault: `[fault:cut]`, `[fault:429 x2]` for the first two tries, `[fault:cut @1]` at step 1. */
export function faultOf(prompt: string): OrderedFault | undefined {
  const match = pattern.exec(prompt);
  if (!match) return undefined;
  const [, name = "", tries, step] = match;
  return {
    fault: faultNamed(name),
    ...(tries !== undefined && { faultTries: Number(tries) }),
    ...(step !== undefined && { atStep: Number(step) }),
  };
}

/** Wraps a program so that it also fails as the last prompt asks. */
export function withFaults(program: ScriptedProgram): ScriptedProgram {
  return async (request) => ({ ...(await program(request)), ...dueFault(request) });
}

/** Counts how often a request has failed. This is the only state of a scripted model between requests. */
export interface FaultCounts {
  /** Counts a try. Removes the turn's fault once enough tries have failed. */
  apply(request: ScriptedRequest, turn: Turn): Turn;
}

const maxCountedRequests = 10_000;

export function createFaultCounts(): FaultCounts {
  const triesByRequest = new Map<string, number>();
  return {
    apply(request, turn) {
      const { fault, ...faultless } = turn;
      if (fault === undefined || turn.faultTries === undefined) return turn;
      const key = JSON.stringify([request.model, request.prompt, request.lastPrompt, request.step, fault]);
      const tries = (triesByRequest.get(key) ?? 0) + 1;
      // Reinsert it as the youngest entry, and evict the oldest.
      triesByRequest.delete(key);
      triesByRequest.set(key, tries);
      for (const oldest of triesByRequest.keys()) {
        if (triesByRequest.size <= maxCountedRequests) break;
        triesByRequest.delete(oldest);
      }
      return tries <= turn.faultTries ? turn : faultless;
    },
  };
}

function dueFault(request: ScriptedRequest): Pick<Turn, "fault" | "faultTries"> {
  const ordered = faultOf(request.lastPrompt);
  if (!ordered || (ordered.atStep ?? request.step) !== request.step) return {};
  const { atStep: _, ...fault } = ordered;
  return fault;
}

function faultNamed(name: string): Fault {
  if (/^[45]\d\d$/.test(name)) return { status: Number(name) };
  const named = namedFaults.find((fault) => fault === name);
  if (named) return named;
  const known = ["400 to 599", ...namedFaults].join(", ");
  throw new SlipwayError("invalid_request", `there is no fault ${JSON.stringify(name)}; there are: ${known}`);
}
