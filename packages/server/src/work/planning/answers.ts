import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { printable, SlipwayError } from "@slipway/contract";
import { InvalidAnswerError } from "@slipway/gateway/roles";

const maxAnswerCharacters = 1024 * 1024;
const maxMessageCharacters = 8000;
/** For a message that is followed by the path of the answer. */
const maxFindingsCharacters = 4000;

/**
 * Keeps a model's answer in a file for the user and returns an error that names it. The answer is untrusted and may be
 * long, so no event contains it.
 */
export async function keepAnswer(
  error: SlipwayError,
  answer: string,
  [directory, ...names]: readonly [string, ...string[]],
): Promise<SlipwayError> {
  const path = join(directory, ...names);
  const written = mkdir(dirname(path), { recursive: true, mode: 0o700 }).then(() =>
    writeFile(path, answer.slice(0, maxAnswerCharacters), { mode: 0o600 }),
  );
  const kept = await written.then(
    () => `The last answer is in ${path}`,
    ({ code }: NodeJS.ErrnoException) => `Cannot write the last answer to ${path}: ${code}`,
  );
  // The gateway's message quotes the answer.
  const message = error instanceof InvalidAnswerError ? "the model gave no answer of the required form" : error.message;
  return new SlipwayError(error.code, `${cut(message, maxFindingsCharacters)}\n${kept}`, { cause: error });
}

/** A failure as it is reported. A defect gives only its name: its message may hold anything. */
export function tellFailure(error: unknown): { readonly code: string; readonly message: string } {
  if (error instanceof SlipwayError) return { code: error.code, message: cut(error.message) };
  return { code: "internal", message: `planning failed: ${error instanceof Error ? error.name : "unknown"}` };
}

function cut(message: string, most = maxMessageCharacters): string {
  const clean = printable(message);
  return (clean.length <= most ? clean : `${clean.slice(0, most)} ...`).toWellFormed();
}
