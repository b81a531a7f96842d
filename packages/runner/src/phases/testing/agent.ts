import type { ScriptedProgram, ScriptedRequest, Turn } from "@slipway/gateway/scripted";
import { rightSum } from "./project.ts";

/** What an agent does at each kind of prompt of a task run. What is not given it does well. */
export interface Parts {
  readonly build?: ScriptedProgram;
  readonly fix?: ScriptedProgram;
  readonly conflict?: ScriptedProgram;
  readonly intent?: ScriptedProgram;
  readonly findings?: ScriptedProgram;
}

const kinds: readonly (readonly [keyof Parts, RegExp])[] = [
  ["findings", /Checks of your work have found/],
  ["fix", /fails (on your work|in a clean checkout)/],
  ["conflict", /conflict/],
  ["intent", /Go through the criteria|You have said nothing/],
  ["build", /Your task:/],
];

export function kindOf({ lastPrompt }: ScriptedRequest): keyof Parts | undefined {
  return kinds.find(([, pattern]) => pattern.test(lastPrompt))?.[0];
}

/** Does the actions one after another, then says the text. */
export function doing(actions: NonNullable<Turn["actions"]>, text = "Done."): ScriptedProgram {
  return ({ step }) => {
    const action = actions[step];
    return action === undefined ? { text } : { actions: [action] };
  };
}

const well: Required<Parts> = {
  build: doing([{ write: "sum.mjs", content: rightSum }]),
  fix: doing([{ write: "sum.mjs", content: rightSum }]),
  conflict: doing([{ write: "list.txt", content: "one\ntwo of both\nthree\n" }]),
  intent: doing([
    { tool: "state_criterion", input: { criterion: "adds", satisfied: true, evidence: "The test says so." } },
  ]),
  findings: doing([{ write: "mended.txt", content: "mended\n" }]),
};

export function agentThat(parts: Parts = {}): ScriptedProgram {
  return (request) => {
    const kind = kindOf(request);
    return kind === undefined ? { text: "I have nothing to do." } : { ...well, ...parts }[kind](request);
  };
}
