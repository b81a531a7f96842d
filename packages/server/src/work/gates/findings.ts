import { type Finding, type GateResult, printable, SlipwayError } from "@slipway/contract";
import { type ProjectStep, projectPath } from "@slipway/sandbox";
import { endOf, lastOf } from "../step-words.ts";

const maxFindings = 32;
const maxCharacters = 8 * 1024;
const maxOutputCharacters = 6000;
const maxPathCharacters = 1024;

/** What a gate found. */
export interface Judged {
  /** A candidate passes if this is empty. */
  readonly against: readonly Finding[];
  /** For the user to look at; they do not fail the candidate. */
  readonly notes: readonly Finding[];
  /** What was checked, one by one. */
  readonly parts?: GateResult["parts"];
}

export const nothingAgainst: Judged = { against: [], notes: [] };

type Place = Pick<Finding, "file" | "line">;

/** A finding for the candidate's agent. The text may quote output of a sandbox. */
export function findingOf(gate: string, text: string, place: Place = {}): Finding {
  return { gate, text: shown(text, maxCharacters), ...place };
}

/** At most `maxFindings`; the last one then counts those left out. */
export function held(gate: string, findings: readonly Finding[]): Finding[] {
  if (findings.length <= maxFindings) return [...findings];
  const told = findings.slice(0, maxFindings - 1);
  return [...told, findingOf(gate, `There are ${findings.length - told.length} more findings.`)];
}

/** What a project command says against the candidate. Throws if its end was not seen: that is no verdict. */
export function againstStep(gate: string, step: ProjectStep | null): Finding[] {
  if (step === null || step.exitCode === 0) return [];
  const { argv, exit } = step;
  const command = `\`${argv.join(" ")}\` ${endOf(exit)}`;
  if (exit.reason === "lost" || exit.reason === "killed") throw new SlipwayError("exec_failed", command);
  const output = lastOf(step, maxOutputCharacters);
  const text = output === "" ? `${command} without any output.` : `${command}. The end of its output:\n${output}`;
  return [findingOf(gate, text, placeIn(output))];
}

/** Places such as `src/a.ts:3:5` or `src/a.ts(3,5)`. */
const places = /(?:^|[\s("'`])((?:[\w.@-]+\/)*[\w.@-]+\.[a-z]{1,5})(?::(\d{1,6})|\((\d{1,6}),)/gim;

/** The first place in the project's own files. */
function placeIn(output: string): Place {
  for (const [, file = "", line, other] of output.replaceAll(`${projectPath}/`, "").matchAll(places)) {
    const number = Number(line ?? other);
    if (file.includes("node_modules/") || file.length > maxPathCharacters || number < 1) continue;
    return { file, line: number };
  }
  return {};
}

/** Output of a sandbox, made printable and short. */
export function shown(text: string, most: number): string {
  return cut(printable(text).trim(), most);
}

export function cut(text: string, most: number): string {
  return (text.length <= most ? text : `${text.slice(0, most - 1)}…`).toWellFormed();
}
