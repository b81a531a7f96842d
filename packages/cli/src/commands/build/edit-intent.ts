import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline/promises";
import type { Client } from "@slipway/client";
import { type BuildId, canonicalJson, hasCode, type Intent, type IntentEdit, SlipwayError } from "@slipway/contract";
import type { Context } from "../../input/command.ts";
import { UsageError } from "../../input/failure.ts";
import { isYes } from "../agent/steer.ts";

/** An editor that nobody sees waits for ever. */
export function requireTerminal({ io }: Context): void {
  if (io.stdin.isTTY === true) return;
  throw new UsageError("--edit needs a terminal to open the editor on.", "Run it in a terminal, or leave --edit out.");
}

/**
 * Opens the intent in the user's editor, again when what comes out of it is not valid, and sends what was changed. What
 * could not be sent is kept.
 */
export async function editIntent(context: Context, client: Client, id: BuildId): Promise<void> {
  const { signal } = context.interrupts;
  const { intent } = await client.builds.intent(id, { signal });
  const directory = await mkdtemp(join(tmpdir(), "slipway-intent-"));
  const file = join(directory, "intent.json");
  const draft = textOf(intent);
  try {
    await writeFile(file, draft, { mode: 0o600 });
    const edit = await sendEdit(context, client, { id, intent, file });
    if (edit === undefined) await context.note("the intent stays as it was drafted");
  } catch (error) {
    const isEdited = (await readFile(file, "utf8").catch(() => draft)) !== draft;
    if (isEdited) await context.note(`your edit is kept in ${file}`);
    else await rm(directory, { recursive: true, force: true });
    await context.note(
      `the build waits: slipway resume ${id} goes on with the drafted intent, slipway cancel ${id} ends it`,
    );
    throw error;
  }
  await rm(directory, { recursive: true, force: true });
}

interface Editing {
  readonly id: BuildId;
  readonly intent: Intent;
  readonly file: string;
}

/** Answers what was sent; undefined: there was nothing to send. */
async function sendEdit(
  context: Context,
  client: Client,
  { id, intent, file }: Editing,
): Promise<IntentEdit | undefined> {
  const { signal } = context.interrupts;
  for (;;) {
    await openEditor(context, file);
    try {
      const edit = changes(intent, await readFile(file, "utf8"));
      if (edit !== undefined) await client.builds.editIntent(id, edit, { signal });
      return edit;
    } catch (error) {
      if (!hasCode(error, "invalid_request") || !(await wantsAgain(context, error))) throw error;
    }
  }
}

/** The request's words are the user's already. */
function textOf({ request: _, ...draft }: Intent): string {
  return `${JSON.stringify(draft, null, 2)}\n`;
}

/** The parts that are not as they were; undefined when there are none. */
function changes(intent: Intent, text: string): IntentEdit | undefined {
  let edited: unknown;
  try {
    edited = JSON.parse(text);
  } catch (cause) {
    throw new SlipwayError("invalid_request", `the file is not JSON: ${(cause as Error).message}`, { cause });
  }
  if (typeof edited !== "object" || edited === null || Array.isArray(edited)) {
    throw new SlipwayError("invalid_request", "the file is not an object with the parts of the intent");
  }
  const known = intent as Readonly<Record<string, unknown>>;
  const changed = Object.entries(edited).filter(([name, part]) => canonicalJson(part) !== canonicalJson(known[name]));
  return changed.length === 0 ? undefined : (Object.fromEntries(changed) as IntentEdit);
}

async function openEditor({ io, progress }: Context, file: string): Promise<void> {
  progress.clear();
  const editor = io.env.VISUAL || io.env.EDITOR || "vi";
  // Editors are set with their options, as shells read them.
  const child = spawn("/bin/sh", ["-c", `${editor} "$1"`, "sh", file], { stdio: "inherit", env: { ...io.env } });
  const [code, killedBy] = (await once(child, "exit")) as [number | null, string | null];
  if (code === 0) return;
  throw new SlipwayError(
    "exec_failed",
    `the editor (${editor}) ended with ${killedBy ?? code}; the intent is not edited`,
  );
}

async function wantsAgain(context: Context, error: SlipwayError): Promise<boolean> {
  if (context.json || context.io.stdin.isTTY !== true) return false;
  await context.note(error.message);
  const asking = createInterface({ input: context.io.stdin, output: context.io.stderr });
  try {
    return isYes(await asking.question("Edit it again? [y/N] ", { signal: context.interrupts.signal }));
  } finally {
    asking.close();
  }
}
