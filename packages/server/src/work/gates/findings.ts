import { type Finding, printable, SlipwayError } from "@slipway/contract";
import { type ProjectStep, projectPath } from "@slipway/sandbox";
import { endOf, lastOf } from "../step-words.ts";

const maxFindings = 32;
const maxCharacters = 8 * 1024;
const maxOutputCharacters = 6000;
const maxPathCharacters = 1024;

type Place = Pick<Finding, "file" | "line">;

/** Against a candidate, for its agent to act on. The text may quote what came out of a sandbox. */
export function findingOf(gate: string, text: string, place: Place = {}): Finding {
  return { gate, text: shown(text, maxCharacters), ...place };
}

/** As many as are told; the last one says how many more there are. */
export function held(gate: string, findings: readonly Finding[]): Finding[] {
  if (findings.length <= maxFindings) return [...findings];
  const told = findings.slice(0, maxFindings - 1);
  return [...told, findingOf(gate, `There are ${findings.length - told.length} more findings.`)];
}

/** What a command of the candidate's own has to say against it. Fails when its end was not seen: that is no verdict. */
export function againstStep(gate: string, step: ProjectStep | null): Finding[] {
  if (step === null || step.exitCode === 0) return [];
  const { argv, exit } = step;
  const command = `\`${argv.join(" ")}\` ${endOf(exit)}`;
  if (exit.reason === "lost" || exit.reason === "killed") throw new SlipwayError("exec_failed", command);
  const output = lastOf(step, maxOutputCharacters);
  const text = output === "" ? `${command} and said nothing.` : `${command}. The end of what it said:\n${output}`;
  return [findingOf(gate, text, placeIn(output))];
}

/** Such as `src/a.ts:3:5` or `src/a.ts(3,5)`: the first that is the project's own. */
const places = /(?:^|[\s("'`])((?:[\w.@-]+\/)*[\w.@-]+\.[a-z]{1,5})(?::(\d{1,6})|\((\d{1,6}),)/gim;

function placeIn(output: string): Place {
  for (const [, file = "", line, other] of output.replaceAll(`${projectPath}/`, "").matchAll(places)) {
    const number = Number(line ?? other);
    if (file.includes("node_modules/") || file.length > maxPathCharacters || number < 1) continue;
    return { file, line: number };
  }
  return {};
}

/** What came out of a sandbox, made harmless and short. */
export function shown(text: string, most: number): string {
  return cut(printable(text).trim(), most);
}

export function cut(text: string, most: number): string {
  return (text.length <= most ? text : `${text.slice(0, most - 1)}…`).toWellFormed();
}
