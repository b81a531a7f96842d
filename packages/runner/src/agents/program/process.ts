import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { type ClaimedEnd, SlipwayError } from "@slipway/contract";
import { claimEnd } from "../../supervise/end.ts";
import { markProcesses } from "../../system/processes.ts";

export interface ProgramOptions {
  readonly argv: readonly [string, ...string[]];
  readonly cwd: string;
  /** The whole environment: nothing is inherited from the runner. */
  readonly env: Readonly<Record<string, string>>;
}

export interface Program {
  readonly stdin: Writable;
  readonly stdout: Readable;
  /** Settles when the program itself has ended. Its children may still run. */
  readonly exit: Promise<ProgramExit>;
  /** The end of its standard error. */
  complaint(): string;
  /** Asks it and everything it started to end, and kills what is left after the grace. Resolves when none of it is left. */
  stop(): Promise<void>;
  /** Kills it and everything it started, without waiting. */
  kill(): void;
}

export interface ProgramExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Between a request to end and an end by force. */
export const stopGraceMs = 3_000;
const maxComplaintChars = 2000;

/** Starts a program in its own session and with a mark, by which all of its descendants are found. */
export async function startProgram({ argv: [file, ...args], cwd, env }: ProgramOptions): Promise<Program> {
  const mark = markProcesses();
  const child = spawn(file, args, { cwd, env: { ...env, ...mark.environment }, stdio: "pipe", detached: true });
  const exit = once(child, "exit").then(([code, signal]): ProgramExit => ({ code, signal }));
  await Promise.race([once(child, "spawn"), exit]).catch((error: unknown) => {
    throw new SlipwayError("component_missing", `${file} could not be started in ${cwd}.`, { cause: error });
  });
  // A program that ends without reading its input is judged by its exit and output, not by the broken pipe.
  child.stdin.on("error", () => {});
  let complaint = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    complaint = (complaint + text).slice(-maxComplaintChars);
  });
  const end = async (graceMs: number): Promise<void> => {
    const gone = await mark.end({ leader: child.pid, graceMs });
    if (!gone) throw new SlipwayError("internal", `Processes of ${file} could not be killed.`);
    await exit;
  };
  return {
    stdin: child.stdin,
    stdout: child.stdout,
    exit,
    complaint: () => complaint.trim(),
    stop: () => end(stopGraceMs),
    // Whoever awaits `stop` gets the failure.
    kill: () => void end(0).catch(() => {}),
  };
}

/** How a turn ends when its program ended first. */
export async function crashOf(program: Pick<Program, "exit" | "complaint">): Promise<ClaimedEnd> {
  const { code, signal } = await program.exit;
  const how = signal === null ? `with exit code ${code}` : `by ${signal}`;
  return claimEnd("crashed", `The agent's program ended ${how}. ${program.complaint()}`.trim());
}
