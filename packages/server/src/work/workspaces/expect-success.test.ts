import type { ErrorCode, ExecEndReason } from "@slipway/contract";
import { expect, test } from "vitest";
import { expectSuccess } from "./expect-success.ts";

function failed(stderr: string, reason: ExecEndReason = "exited"): () => void {
  const exitCode = reason === "exited" ? 1 : null;
  const exit = { reason, exitCode, signal: null, durationMs: 1, stdoutBytes: 0, stderrBytes: 0 };
  return () => expectSuccess({ argv: ["npm", "ci"], exit, stdout: "", stderr });
}

test.each<[string, string, ExecEndReason | undefined, ErrorCode]>([
  ["a commit's mistake", "npm error code ERESOLVE", undefined, "install_failed"],
  ["a command that uses up its sandbox's memory", "", "out_of_memory", "install_failed"],
  ["a command whose end nobody saw", "", "lost", "provider_unavailable"],
  ["a command that was ended from outside", "npm error code ERESOLVE", "killed", "provider_unavailable"],
  ["a registry that is away", "npm error code E503", undefined, "provider_unavailable"],
  ["a way to the registry that was cut", "npm error code ECONNRESET", undefined, "provider_unavailable"],
  ["a proxy that ended before it answered", "npm error code FETCH_ERROR", undefined, "provider_unavailable"],
  ["a full disk", "tar: a.txt: No space left on device", undefined, "out_of_disk"],
])("%s is told as what it is", (_, stderr, reason, code) => {
  expect(failed(stderr, reason)).toThrow(expect.objectContaining({ code }));
});

test("a failure tells the command, how it ended and its last words", () => {
  expect(failed("npm error code ERESOLVE\n")).toThrow("npm ci ended with exit code 1: npm error code ERESOLVE");
});
