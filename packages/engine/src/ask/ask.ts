import { fence, SlipwayError } from "@slipway/contract";
import type { ModelQuestion, ModelRoles } from "../ports/models.ts";

/** A rule that an answer breaks and that a schema cannot express. */
export interface Finding {
  readonly rule: string;
  readonly message: string;
}

export interface SoundQuestion<T> extends ModelQuestion<T> {
  check(answer: T): readonly Finding[] | Promise<readonly Finding[]>;
}

const maxRepairs = 2;

/** Returns an answer without findings. Asks again with all findings, a few times; then fails with `invalid_answer`. */
export async function askUntilSound<T>(models: ModelRoles, { check, ...question }: SoundQuestion<T>): Promise<T> {
  let prompt = question.prompt;
  for (let tries = 1; ; tries++) {
    const { value } = await models.ask({ ...question, prompt });
    const findings = await check(value);
    if (findings.length === 0) return value;
    if (tries > maxRepairs) throw unsound(question.role, tries, findings);
    prompt = await repairPrompt(question.prompt, value, findings);
  }
}

const maxQuotedCharacters = 64 * 1024;
const maxToldFindings = 40;

async function repairPrompt(prompt: string, answer: unknown, findings: readonly Finding[]): Promise<string> {
  const quoted = fence("answer", JSON.stringify(answer).slice(0, maxQuotedCharacters));
  return [
    prompt,
    "This is your last answer:",
    quoted,
    // Findings quote the answer, which is not trusted either.
    fence("findings", listed(findings)),
    "Answer again, whole, with every finding mended and the rest unchanged.",
  ].join("\n\n");
}

function listed(findings: readonly Finding[]): string {
  const told = findings.slice(0, maxToldFindings).map(({ rule, message }) => `- ${rule}: ${message}`);
  const rest = findings.length - told.length;
  return [...told, ...(rest > 0 ? [`- and ${rest} more`] : [])].join("\n");
}

function unsound(role: string, tries: number, findings: readonly Finding[]): SlipwayError {
  return new SlipwayError(
    "invalid_answer",
    `no answer of the role ${role} could be used after ${tries} tries:\n${listed(findings)}`,
  );
}
