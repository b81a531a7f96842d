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

/** Settings that a server reads once, at its start. */
const serverSetting =
  /^(SANDBOX_PROVIDER|MODAL_\w+|MAX_PARALLEL_SANDBOXES|BUILD_\w+|DATABASE_URL|REDIS_\w+|RESTATE_\w+|SLIPWAY_(MODEL|MODAL|PRICES|CASSETTE|LOG_PROMPTS|ENDPOINTS|KEY|AGENTS|PUSH_URL|PULL_REQUEST|SIMULATION|FLEET|SERVER|DATABASE|RESTATE|SANDBOX_UID)\w*|\w+_API_KEY|\w+_BASE_URL)$/;

const noteSchema = z.object({ pid: z.int(), settings: z.record(z.string(), z.string()) });

/** Records the settings that the server was started with, as digests, for later commands. */
export async function noteSettings({ stateDir, environment }: ServerStart, pid: number | undefined): Promise<void> {
  const note = { pid, settings: Object.fromEntries(settingsOf(environment)) };
  // Only a hint: the server works without it.
  await writeFile(join(stateDir, serverFiles.settings), JSON.stringify(note), { mode: 0o600 }).catch(() => {});
}

/** Names of the settings that differ from those that the server with this pid was started with. */
export async function changedSettings({ stateDir, environment }: ServerStart, pid: number): Promise<string[]> {
  const text = readFile(join(stateDir, serverFiles.settings), "utf8");
  const note = noteSchema.safeParse(await text.then(JSON.parse).catch(() => null)).data;
  if (note?.pid !== pid) return [];
  return [...settingsOf(environment)].filter(([name, digest]) => note.settings[name] !== digest).map(([name]) => name);
}

function* settingsOf(environment: Environment): Iterable<[string, string]> {
  for (const [name, value] of Object.entries(environment)) {
    if (value && serverSetting.test(name)) yield [name, createHash("sha256").update(value).digest("hex")];
  }
}
