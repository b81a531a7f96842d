import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Surroundings } from "./find.ts";

/** The agent's own home directory, with the files that it is to find there, by their paths. */
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

/** Variables by which programs find other models, settings or homes than those of the run. */
const ofPrograms = /^(ANTHROPIC|CLAUDE|CODEX|GEMINI|OPENCODE|XDG)_/;

/** What the program has from the sandbox, and so what its commands have. */
export function environmentIn({ environment }: Surroundings, home: string): Record<string, string> {
  const passed = Object.entries(environment).filter(([name]) => !ofPrograms.test(name));
  return { ...Object.fromEntries(passed), HOME: home, LANG: "C.UTF-8" };
}
