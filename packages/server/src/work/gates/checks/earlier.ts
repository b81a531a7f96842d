import type { CheckOf } from "@slipway/contract";
import { cut } from "../findings.ts";
import type { Target, ToldStep, ToldVisit } from "./browser-job.ts";
import type { Answer, Exchange } from "./exchange.ts";
import { type Outcome, toldInOrder } from "./outcome.ts";

/** Checks of intents that were locked before intents had surfaces. They name controls and texts themselves. */
type Step = CheckOf<"browser">["steps"][number];

export function browserJob({ viewport, appearance, steps }: CheckOf<"browser">): ToldVisit {
  return { viewport, appearance, steps: steps.map(toldStep) };
}

/** Never names what has to be seen: an app could show it without doing what it stands for. */
function toldStep(step: Step): ToldStep {
  const unmet = "";
  switch (step.action) {
    case "open":
      return { step, done: `${step.path} was opened.`, unmet };
    case "reload":
      return { step, done: "The page was reloaded.", unmet };
    case "press":
      return { step, done: `The key ${step.key} was pressed.`, unmet };
    case "see":
    case "see-nothing-of": {
      const { role } = step.target;
      const [there, gone] = [`A ${role} that must be there`, `A ${role} that must be gone`];
      const told =
        step.action === "see"
          ? { done: `${there} was visible.`, unmet: `${there} was not visible.` }
          : { done: `${gone} was not visible.`, unmet: `${gone} was visible.` };
      return { step: { action: step.action, target: targetOf(step.target) }, ...told };
    }
    default: {
      const { role, name } = step.target;
      const control = `${role} "${name}"`;
      const done = {
        click: `The ${control} was clicked.`,
        fill: `Something was typed into the ${control}.`,
        choose: `Something was chosen in the ${control}.`,
      }[step.action];
      return { step: { ...step, target: targetOf(step.target) }, done, unmet: `There was no visible ${control}.` };
    }
  }
}

function targetOf({ role, name }: Extract<Step, { readonly action: "see" }>["target"]): Target {
  return { role, names: [name] };
}

export function performanceJob({ path, metric }: CheckOf<"performance">) {
  return { type: "measure", path, sees: null, metric } as const;
}

const maxBodyCharacters = 1500;

/** Makes the exchanges of a check with the app, up to the first wrong answer. */
export async function makeExchanges(
  { exchanges }: CheckOf<"http">,
  ask: (exchange: Exchange) => Promise<Answer>,
): Promise<Outcome> {
  const told: string[] = [];
  for (const { method, path, body, expect } of exchanges) {
    const { ok, text } = judge(
      expect,
      await ask({ method, path, body, isFinal: (status) => status === expect.status }),
    );
    told.push(`${method} ${path}${text}`);
    if (!ok) return { ok, text: toldInOrder(told), step: told.length - 1 };
  }
  return { ok: true, text: toldInOrder(told) };
}

type Expected = CheckOf<"http">["exchanges"][number]["expect"];

function judge({ status, bodyContains, bodyLacks }: Expected, answer: Answer): Pick<Outcome, "ok" | "text"> {
  if ("failure" in answer) return { ok: false, text: `: the app ${answer.failure}.` };
  const seen = `The answer began with:\n${cut(answer.body, maxBodyCharacters)}`;
  const wrong = (how: string) => ({ ok: false, text: ` was answered with ${how} ${seen}` });
  if (answer.status !== status) return wrong(`${answer.status}; ${status} was expected.`);
  if (!bodyContains.every((part) => answer.body.includes(part)))
    return wrong(`${status}, but the answer lacks expected content.`);
  if (bodyLacks.some((part) => answer.body.includes(part)))
    return wrong(`${status}, but the answer has content that it must not have.`);
  return { ok: true, text: ` was answered with ${status}, as expected.` };
}
