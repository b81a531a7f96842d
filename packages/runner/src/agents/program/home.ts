import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Surroundings } from "./find.ts";

/** Creates the agent's home directory with the given files. */
export async function makeHome(
  surroundings: Surroundings,
  agent: string,
  files: Readonly<Record<string, string>>,
): Promise<string> {
  const home = homeOf(surroundings, agent);
  await mkdir(home, { recursive: true, mode: 0o700 });
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(home, path)), { recursive: true });
    await writeFile(join(home, path), content, { mode: 0o600 });
  }
  return home;
}

export function homeOf({ homesDirectory }: Surroundings, agent: string): string {
  return join(homesDirectory, agent);
}

/** Variables that would lead programs to other models, settings or homes than the run's. */
const ofPrograms = /^(ANTHROPIC|CLAUDE|CODEX|GEMINI|OPENCODE|XDG)_/;

/** The environment of the program, and so of its commands. */
export function environmentIn({ environment }: Surroundings, home: string): Record<string, string> {
  const passed = Object.entries(environment).filter(([name]) => !ofPrograms.test(name));
  return { ...Object.fromEntries(passed), HOME: home, LANG: "C.UTF-8" };
}
