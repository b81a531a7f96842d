import type { RunnerEvent } from "@slipway/contract";

/** Between two steps: the runner was killed, and came back. */
const resumed = "resumed";

/**
 * What a task run has finished, in order: phases, commands and commits, each by a name that an honest run has once. A
 * command is run again only on another commit; those beside the work, in the build phase, are no steps.
 */
export function stepsOf(events: readonly RunnerEvent[]): string[] {
  let commit = "its base";
  let round = 1;
  return events.flatMap((event) => {
    switch (event.type) {
      case "phase":
        round = event.round;
        return event.status === "finished" ? [phaseStep(event.phase, event.round)] : [];
      case "command":
        return event.phase === "build" ? [] : [`${event.phase} ${round}: ${event.command} on ${commit}`];
      case "committed":
        commit = event.commit;
        return [`committed ${event.commit}`];
      case "resumed":
        return [resumed];
      default:
        return [];
    }
  });
}

function phaseStep(phase: string, round: number): string {
  return `finished ${phase} ${round}`;
}

/** Those that were done again, but for one that was the last before its runner was killed: it may not have been noted. */
export function repeatedSteps(steps: readonly string[]): string[] {
  return steps.filter((step, index) => {
    const first = steps.indexOf(step);
    return step !== resumed && first < index && steps[first + 1] !== resumed;
  });
}

/** What was done for sure when a snapshot was made behind this phase. */
export function stepsBefore(steps: readonly string[], phase: string): string[] {
  const at = steps.findIndex((step) => step.startsWith(`finished ${phase} `));
  return steps.slice(0, Math.max(at, 0)).filter((step) => step !== resumed);
}
