import type { ExecRequestInput } from "@slipway/contract";
import type { SimulatedProgram } from "../providers/simulated/program.ts";
import { commands } from "./programs/commands.ts";
import { fileCommands } from "./programs/file-commands.ts";
import type { Program } from "./programs/program.ts";
import { servers } from "./programs/servers.ts";

const table = { ...commands, ...fileCommands, ...servers } satisfies Record<string, Program>;

export type ProgramName = keyof typeof table;

/** The exec request that runs a program with arguments. */
export function command(name: ProgramName, ...args: string[]): ExecRequestInput {
  return { argv: ["sh", "-c", table[name].shell, "sh", ...args] };
}

export function shellText(name: ProgramName): string {
  return table[name].shell;
}

/** The `sh` of a simulated provider under the suite: it knows the suite's texts and nothing else. */
export const scriptedShell: SimulatedProgram = async (process) => {
  const program = Object.values<Program>(table).find(({ shell }) => shell === process.argv[2]);
  if (program?.scripted) return await program.scripted(process);
  await process.stderr.write("sh: this text has no script\n");
  return 127;
};
