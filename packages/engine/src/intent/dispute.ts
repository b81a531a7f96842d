import { isDeepStrictEqual } from "node:util";
import {
  type Check,
  type CheckPlace,
  checkSchema,
  culprits,
  fence,
  type Intent,
  type KeptCheck,
  SlipwayError,
} from "@slipway/contract";
import { z } from "zod";
import { askUntilSound, type Finding } from "../ask/ask.ts";
import type { ModelRoles } from "../ports/models.ts";
import type { ReportOf } from "../ports/reports.ts";
import { checkChecks, surfaceOf } from "./checks.ts";
import { type CheckPorts, checkOnDummies } from "./on-dummies.ts";
import { disputeInstructions, recompileInstructions } from "./prompts.ts";

export interface DisputeQuestion {
  readonly intent: Intent;
  /** Those of the criterion in dispute, and of all others. */
  readonly checks: ReadonlyMap<string, readonly KeptCheck[]>;
  readonly at: CheckPlace;
  /** What was seen where candidates failed, oldest first. */
  readonly evidence: readonly string[];
  /** Why the check is wrong, by the user. Null: the judge decides whether it is. */
  readonly ruling: string | null;
  /** Whether a check passes on main as it was before any work on what the check proves. */
  passesWithout(check: Check): Promise<boolean>;
  readonly signal?: AbortSignal | undefined;
}

export type DisputeEnd = Omit<ReportOf<"dispute.settled">["data"], "dispute" | "round">;

/** Decides whether the app is wrong or the check. A wrong check is compiled anew, if one that can fail is found. */
export async function settleDispute(ports: CheckPorts, question: DisputeQuestion): Promise<DisputeEnd> {
  const { checks, at, ruling, signal } = question;
  const before = checks.get(at.criterion)?.[at.check];
  if (before === undefined) throw new Error(`${at.criterion} has no check ${at.check}`);
  const ruled = ruling === null ? await judge(ports.models, question, before) : { ...byUser, because: ruling };
  if (ruled.wrong === "app") return { ...ruled, replacement: null };
  const end = { wrong: ruled.wrong, because: ruled.because, advice: null };
  try {
    const after = await recompile(ports, question, before, ruled.because);
    return { ...end, replacement: { before, after } };
  } catch (error) {
    signal?.throwIfAborted();
    if (!(error instanceof SlipwayError)) throw error;
    const because = `${ruled.because} No better check was found: ${error.message}`.slice(0, maxCharacters);
    return { ...end, because, replacement: null };
  }
}

const byUser = { wrong: "check", advice: null } as const;
const maxCharacters = 2000;
const sentence = z.string().trim().min(1).max(500);
const rulingAnswer = z.strictObject({ wrong: z.enum(culprits), because: sentence, advice: sentence.nullable() });

async function judge(models: ModelRoles, { intent, at, evidence, signal }: DisputeQuestion, check: KeptCheck) {
  const statement = statementOf(intent, at.criterion);
  return await askUntilSound(models, {
    role: "judge",
    instructions: disputeInstructions,
    prompt: [
      fence("criterion", statement),
      fence("surface", JSON.stringify(surfaceOf(intent), null, 1)),
      fence("check", JSON.stringify(check, null, 1)),
      `The step that fails, counted from 0: ${at.step}`,
      ...evidence.map((seen) => fence("evidence", seen)),
    ].join("\n\n"),
    schema: rulingAnswer,
    check: (answer) => adviceProblems(answer, check),
    signal,
  });
}

/** Agents read the advice: it must not tell them what the check enters. */
function adviceProblems({ wrong, advice }: z.output<typeof rulingAnswer>, check: KeptCheck): readonly Finding[] {
  if (wrong === "check") return [];
  const rule = "agents learn no values";
  if (advice === null)
    return [{ rule: "agents can act on it", message: "an app that is wrong needs a sentence of advice" }];
  const told = valuesIn(check).filter((value) => saysValue(advice, value));
  return told.length === 0 ? [] : [{ rule, message: `the advice repeats values of the check: ${told.join(", ")}` }];
}

/** Short ones occur in other words. */
const minPartCharacters = 3;

function saysValue(advice: string, value: string): boolean {
  if (value.length >= minPartCharacters) return advice.toLowerCase().includes(value.toLowerCase());
  return advice
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .includes(value.toLowerCase());
}

function valuesIn(check: unknown): string[] {
  if (typeof check !== "object" || check === null) return [];
  return Object.entries(check).flatMap(([key, value]) =>
    key === "value" && ["string", "number"].includes(typeof value) ? [String(value)] : valuesIn(value),
  );
}

async function recompile(
  { models, dummies }: CheckPorts,
  { intent, checks, at, ruling, passesWithout, signal }: DisputeQuestion,
  before: KeptCheck,
  because: string,
): Promise<Check> {
  const others = [...checks].flatMap(([criterion, all]) =>
    all.filter((_, index) => criterion !== at.criterion || index !== at.check),
  ) as Check[];
  const { check } = await askUntilSound(models, {
    role: "intent",
    instructions: recompileInstructions,
    prompt: [
      fence("contract", JSON.stringify(intent, null, 1)),
      fence("check", JSON.stringify(before, null, 1)),
      fence("reason", because),
    ].join("\n\n"),
    schema: z.strictObject({ check: checkSchema }),
    async check({ check }) {
      const rule = "the check is another one";
      if (check.proves !== at.criterion) return [{ rule, message: `it has to prove ${at.criterion}` }];
      if (isDeepStrictEqual(check, before)) return [{ rule, message: "it is the wrong check again" }];
      const problems = checkChecks(intent, [...others, check]);
      if (problems.length > 0) return problems;
      const onDummies = await checkOnDummies(dummies, { surface: surfaceOf(intent), checks: [check] }, { signal });
      // The user has seen the check; a judge may have been talked into its ruling.
      if (onDummies.length > 0 || ruling !== null || !(await passesWithout(check))) return onDummies;
      const message = `the check of ${check.proves} passes on main without the work that it is about`;
      return [{ rule: "a check can fail", message }];
    },
    signal,
  });
  return check;
}

function statementOf({ criteria, workflows }: Intent, id: string): string {
  const criterion = criteria.find((one) => one.id === id);
  return criterion?.statement ?? JSON.stringify(workflows.find((one) => one.id === id) ?? id, null, 1);
}
