import type { SimulatedProcess, SimulatedProgram } from "../../providers/simulated/program.ts";
import { readText } from "../../run.ts";

/** A program of the suite: a text for `sh`, and a twin that the simulated provider plays (null: only where programs are real). */
export interface Program {
  readonly shell: string;
  readonly scripted: SimulatedProgram | null;
}

export async function forever({ clock }: SimulatedProcess): Promise<never> {
  for (;;) await clock.sleep(20);
}

export async function append(files: SimulatedProcess["files"], path: string, text: string): Promise<void> {
  const before = await readText(files, path).catch(() => "");
  await files.write(path, before + text);
}
