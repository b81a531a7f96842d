import { type ErrorCode, SlipwayError } from "@slipway/contract";
import type { ProjectStep } from "@slipway/sandbox";
import { endOf, lastOf } from "../step-words.ts";

const maxOutputCharacters = 2000;
/** npm names a request `FETCH_ERROR` when the proxy ends during its CONNECT. */
const registryTrouble =
  /npm error code (ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONN\w+|ERR_SOCKET_TIMEOUT|FETCH_ERROR|E5\d\d)\b/;

/** Fails with `install_failed` if the commit is at fault. A command whose end nobody saw says nothing about it. */
export function expectSuccess({ argv, exit, stdout, stderr }: Omit<ProjectStep, "exitCode" | "truncated">): void {
  if (exit.exitCode === 0) return;
  const words = lastOf({ stdout, stderr }, maxOutputCharacters);
  throw new SlipwayError(codeOf(exit, stderr), `${argv.join(" ")} ${endOf(exit)}: ${words}`);
}

function codeOf({ reason }: ProjectStep["exit"], stderr: string): ErrorCode {
  if (reason === "lost" || reason === "killed" || registryTrouble.test(stderr)) return "provider_unavailable";
  return /\bENOSPC\b|no space left on device/i.test(stderr) ? "out_of_disk" : "install_failed";
}
