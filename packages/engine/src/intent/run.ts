import {
  type CompiledChecks,
  checkListSchema,
  fence,
  intentDraftSchema,
  type LockedIntent,
  type OpenIntent,
} from "@slipway/contract";
import { askUntilSound } from "../ask/ask.ts";
import { describeStart } from "../ask/start.ts";
import type { ModelRoles } from "../ports/models.ts";
import type { StartingPoint } from "../ports/repository.ts";
import { checkChecks, surfaceOf } from "./checks.ts";
import { checkIntent, openIntent, readRequest } from "./decide.ts";
import { type CheckPorts, checkOnDummies } from "./on-dummies.ts";
import { checkInstructions, intentInstructions } from "./prompts.ts";

const maxOutputTokens = 32_000;

/** Lets the model turn a request into an intent, which the user may edit. */
export async function draftIntent(
  models: ModelRoles,
  ask: {
    readonly request: string;
    readonly start: StartingPoint;
    readonly signal?: AbortSignal | undefined;
  },
): Promise<OpenIntent> {
  const request = readRequest(ask.request);
  const draft = await askUntilSound(models, {
    role: "intent",
    instructions: intentInstructions(ask.start.mode),
    prompt: [fence("request", request), ...(await describeStart(ask.start))].join("\n\n"),
    schema: intentDraftSchema,
    check: (answer) => checkIntent(answer),
    maxOutputTokens,
    signal: ask.signal,
  });
  return openIntent(request, draft);
}

/**
 * Lets the model make the checks that will prove the intent. Nothing is built that cannot be proven: the lock needs
 * them. Each has failed on apps that do nothing.
 */
export async function compileChecks(
  { models, dummies }: CheckPorts,
  { intent, hash }: LockedIntent,
  { signal }: { readonly signal?: AbortSignal | undefined } = {},
): Promise<CompiledChecks> {
  const { checks } = await askUntilSound(models, {
    role: "intent",
    instructions: checkInstructions,
    prompt: fence("contract", JSON.stringify(intent, null, 1)),
    schema: checkListSchema,
    async check({ checks }) {
      const findings = checkChecks(intent, checks);
      if (findings.length > 0) return findings;
      return await checkOnDummies(dummies, { surface: surfaceOf(intent), checks }, { signal });
    },
    maxOutputTokens,
    signal,
  });
  return { intentHash: hash, checks };
}
