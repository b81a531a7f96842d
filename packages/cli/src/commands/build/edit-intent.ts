import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "@slipway/client";
import { type BuildId, canonicalJson, hasCode, type Intent, type IntentEdit, SlipwayError } from "@slipway/contract";
import type { Context } from "../../input/command.ts";
import { UsageError } from "../../input/failure.ts";
import { ask, canAsk } from "./ask.ts";

/** Without a terminal an editor would wait for ever. */
export function requireTerminal({ io }: Context): void {
  if (io.stdin.isTTY === true) return;
  throw new UsageError("--edit needs a terminal for the editor.", "Run it in a terminal, or remove --edit.");
}

/** Opens the intent in the user's editor, again if the result is not valid, and sends the changes. Keeps an edit that cannot be sent. */
export async function editIntent(context: Context, client: Client, id: BuildId): Promise<void> {
  const { signal } = context.interrupts;
  const { intent } = await client.builds.intent(id, { signal });
  const directory = await mkdtemp(join(tmpdir(), "slipway-intent-"));
  const file = join(directory, "intent.json");
  const draft = textOf(intent);
  try {
    await writeFile(file, draft, { mode: 0o600 });
    const edit = await sendEdit(context, client, { id, intent, file });
    if (edit === undefined) await context.note("intent unchanged");
  } catch (error) {
    const isEdited = (await readFile(file, "utf8").catch(() => draft)) !== draft;
    if (isEdited) await context.note(`your edit is saved in ${file}`);
    else await rm(directory, { recursive: true, force: true });
    await context.note(
      `the build is held: slipway resume ${id} continues with the drafted intent, slipway cancel ${id} cancels it`,
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

/** Returns the edit that was sent; undefined if nothing changed. */
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

/** Omits the request: the user wrote it. */
function textOf({ request: _, ...draft }: Intent): string {
  return `${JSON.stringify(draft, null, 2)}\n`;
}

/** The changed parts; undefined if there are none. */
function changes(intent: Intent, text: string): IntentEdit | undefined {
  let edited: unknown;
  try {
    edited = JSON.parse(text);
  } catch (cause) {
    throw new SlipwayError("invalid_request", `The file is not JSON: ${(cause as Error).message}`, { cause });
  }
  if (typeof edited !== "object" || edited === null || Array.isArray(edited)) {
    throw new SlipwayError("invalid_request", "The file is not an object with the parts of the intent.");
  }
  const known = intent as Readonly<Record<string, unknown>>;
  const changed = Object.entries(edited).filter(([name, part]) => canonicalJson(part) !== canonicalJson(known[name]));
  return changed.length === 0 ? undefined : (Object.fromEntries(changed) as IntentEdit);
}

async function openEditor({ io, progress }: Context, file: string): Promise<void> {
  progress.clear();
  const editor = io.env.VISUAL || io.env.EDITOR || "vi";
  // $EDITOR may contain options, as in a shell.
  const child = spawn("/bin/sh", ["-c", `${editor} "$1"`, "sh", file], { stdio: "inherit", env: { ...io.env } });
  const [code, killedBy] = (await once(child, "exit")) as [number | null, string | null];
  if (code === 0) return;
  throw new SlipwayError(
    "exec_failed",
    `The editor (${editor}) ended with ${killedBy ?? code}. The intent is unchanged.`,
  );
}

async function wantsAgain(context: Context, error: SlipwayError): Promise<boolean> {
  if (!canAsk(context)) return false;
  await context.note(error.message);
  return (await ask(context, "Edit it again? [y/N]", context.interrupts.signal)) === "y";
}

const pollMs = 50;

/** The draft's event comes before the build is held. False if the build does not wait for its user. */
export async function untilHeld(client: Client, id: BuildId, signal: AbortSignal): Promise<boolean> {
  for (;;) {
    const { planning, endedAt } = await client.builds.get(id, { signal });
    if (planning?.step === "held") return true;
    if (planning?.stage !== "draft" || endedAt !== null) return false;
    await delay(pollMs, undefined, { signal });
  }
}
