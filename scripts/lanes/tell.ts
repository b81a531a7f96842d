import type { Verdict } from "./lanes.ts";

/** Prints what failed and what was flaky, each with its reasons. */
export function tellVerdict({ passed, failed, failures, broken, flaky }: Verdict): void {
  for (const { lane, file, name, state, errors } of failures) tell(state, `${file} > ${name} (${lane})`, errors);
  for (const { where, errors } of broken) tell("broken", where, errors);
  for (const { lane, file, name, errors } of flaky) {
    tell("flaky", `${file} > ${name} (${lane}). It passed when it ran again, alone. Its first try:`, errors);
  }
  console.log(`\ntests: ${passed} passed, ${failed} failed`);
}

function tell(state: string, what: string, errors: readonly string[]): void {
  console.log(`\n${state}: ${what}`);
  for (const error of errors) console.log(error.slice(0, 3000));
}
