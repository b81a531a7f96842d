import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { serverFiles } from "@slipway/contract";
import { z } from "zod";
import type { Environment } from "../terminal/environment.ts";

export interface ServerStart {
  readonly stateDir: string;
  readonly environment: Environment;
}

/** Settings that a server reads once, when it starts: sandboxes, limits of builds, models and their keys, stores. */
const serverSetting =
  /^(SANDBOX_PROVIDER|MAX_PARALLEL_SANDBOXES|BUILD_\w+|DATABASE_URL|REDIS_\w+|RESTATE_\w+|SLIPWAY_(MODEL|PRICES|CASSETTE|LOG_PROMPTS|ENDPOINTS|KEY|AGENTS|PUSH_URL|PULL_REQUEST|SIMULATION|FLEET|SERVER|DATABASE|RESTATE|SANDBOX_UID)\w*|\w+_API_KEY|\w+_BASE_URL)$/;

const noteSchema = z.object({ pid: z.int(), settings: z.record(z.string(), z.string()) });

/** Leaves what the server was started with, for the commands that find it running. Values are kept as digests. */
export async function noteSettings({ stateDir, environment }: ServerStart, pid: number | undefined): Promise<void> {
  const note = { pid, settings: Object.fromEntries(settingsOf(environment)) };
  // It is a hint: the server runs without it.
  await writeFile(join(stateDir, serverFiles.settings), JSON.stringify(note), { mode: 0o600 }).catch(() => {});
}

/** What this environment sets otherwise than the one in which the server with this pid was started, by name. */
export async function changedSettings({ stateDir, environment }: ServerStart, pid: number): Promise<string[]> {
  const text = await readFile(join(stateDir, serverFiles.settings), "utf8").catch(() => "null");
  const note = noteSchema.safeParse(tryJson(text)).data;
  if (note?.pid !== pid) return [];
  return [...settingsOf(environment)].filter(([name, digest]) => note.settings[name] !== digest).map(([name]) => name);
}

function* settingsOf(environment: Environment): Iterable<[string, string]> {
  for (const [name, value] of Object.entries(environment)) {
    if (value && serverSetting.test(name)) yield [name, createHash("sha256").update(value).digest("hex")];
  }
}

function tryJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
