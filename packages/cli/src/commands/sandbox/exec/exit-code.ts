import { constants } from "node:os";
import type { ExecExit } from "@slipway/contract";
import { ownFailure } from "../../../input/failure.ts";

const timeoutExit = 124;

/** The exit code that a shell would show for the same end. */
export function exitCodeOf(exit: ExecExit): number {
  switch (exit.reason) {
    case "exited":
      return exit.exitCode ?? ownFailure;
    case "timeout":
      return timeoutExit;
    case "signaled":
    case "killed":
    case "out_of_memory":
      return 128 + signalNumber(exit.signal ?? "SIGKILL");
    case "lost":
      return ownFailure;
  }
}

function signalNumber(name: string): number {
  const numbers: Readonly<Record<string, number>> = constants.signals;
  return numbers[name] ?? constants.signals.SIGKILL;
}

/** What a person should know about an end beyond its exit code. */
export function explainExit(exit: ExecExit): string | undefined {
  switch (exit.reason) {
    case "timeout":
      return "the program ran into its timeout; --timeout changes it";
    case "out_of_memory":
      return "the program was killed because the sandbox ran out of memory";
    case "lost":
      return "the program's end was not observed: do not take it for a success";
    case "killed":
      return "the program was killed";
    case "exited":
    case "signaled":
      return undefined;
  }
}
