import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { printable, SlipwayError } from "@slipway/contract";
import { InvalidAnswerError } from "@slipway/gateway/roles";

const maxAnswerCharacters = 1024 * 1024;
const maxMessageCharacters = 8000;
/** Of a message that is followed by where the answer is. */
const maxFindingsCharacters = 4000;

/**
 * Keeps what a model answered for the user to look at. It is in no event: nobody vouches for it, and it may be long. Answers
 * with the error that names the file.
 */
export async function keepAnswer(
  error: SlipwayError,
  answer: string,
  [directory, ...names]: readonly [string, ...string[]],
): Promise<SlipwayError> {
  const path = join(directory, ...names);
  const kept = await write(path, answer.slice(0, maxAnswerCharacters)).then(
    () => `The last answer is kept in ${path}`,
    ({ code }: NodeJS.ErrnoException) => `The last answer could not be kept in ${path}: ${code}`,
  );
  // The gateway's message quotes the answer.
  const message = error instanceof InvalidAnswerError ? "no answer of the model fits its form" : error.message;
  return new SlipwayError(error.code, `${cut(message, maxFindingsCharacters)}\n${kept}`, { cause: error });
}

async function write(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await writeFile(path, text, { mode: 0o600 });
}

/** A failure as it is reported. What is a defect tells its name only: its words may be anything. */
export function tellFailure(error: unknown): { readonly code: string; readonly message: string } {
  if (error instanceof SlipwayError) return { code: error.code, message: cut(error.message) };
  return { code: "internal", message: `planning broke: ${error instanceof Error ? error.name : "unknown"}` };
}

function cut(message: string, most = maxMessageCharacters): string {
  const clean = printable(message);
  return (clean.length <= most ? clean : `${clean.slice(0, most)} ...`).toWellFormed();
}
