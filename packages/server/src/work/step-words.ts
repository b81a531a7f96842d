import { type ExecExit, printable } from "@slipway/contract";
import type { ProjectStep } from "@slipway/sandbox";

const maxSearchedCharacters = 64 * 1024;

/** The end of both output streams of a command; each gets half of the room, plus what the other leaves. */
export function lastOf({ stdout, stderr }: Pick<ProjectStep, "stdout" | "stderr">, maxCharacters: number): string {
  const [said = "", complained = ""] = [stdout, stderr].map((log) =>
    printable(log.slice(-maxSearchedCharacters)).trim(),
  );
  const room = (other: string) => Math.max(maxCharacters / 2, maxCharacters - 1 - other.length);
  const parts = [complained.slice(-room(said)), said.slice(-room(complained))];
  return parts
    .filter((part) => part !== "")
    .join("\n")
    .toWellFormed();
}

export function endOf({ reason, exitCode, signal, durationMs }: ExecExit): string {
  switch (reason) {
    case "exited":
      return `ended with exit code ${exitCode}`;
    case "timeout":
      return `did not end within ${Math.round(durationMs / 1000)} seconds`;
    default:
      return `was ended: ${reason.replaceAll("_", " ")}${signal === null ? "" : `, ${signal}`}`;
  }
}
