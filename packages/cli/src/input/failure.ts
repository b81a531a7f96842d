/** Exit code of Slipway's own failures; a program's own exit codes are below it. */
export const ownFailure = 125;
export const brokenPipeExit = 141;

/** The command line itself is wrong. Imports nothing of a provider, so that help and parsing load fast. */
export class UsageError extends Error {
  readonly action: string;

  constructor(message: string, action = "Run the command with --help for its arguments and options.") {
    super(message);
    this.name = "UsageError";
    this.action = action;
  }
}

/** The user or the system sent SIGINT or SIGTERM. */
export class Interrupted extends Error {
  readonly exitCode: number;

  constructor(signal: "SIGINT" | "SIGTERM") {
    super("interrupted");
    this.name = "Interrupted";
    this.exitCode = signal === "SIGINT" ? 130 : 143;
  }
}

export interface Failure {
  readonly code: string;
  readonly message: string;
  readonly retry: "never" | "later";
  readonly action: string;
}

/** Describes an error for people and for JSON, without its stack. */
export async function describeFailure(error: unknown): Promise<Failure & { defect: boolean }> {
  if (error instanceof UsageError) {
    return { code: "invalid_request", message: error.message, retry: "never", action: error.action, defect: false };
  }
  if (error instanceof Interrupted) {
    return { code: "aborted", message: error.message, retry: "later", action: "Run it again.", defect: false };
  }
  const { SlipwayError } = await import("@slipway/contract");
  if (error instanceof SlipwayError) return { ...error.toJSON(), defect: error.code === "internal" };
  const system = systemFailure(error);
  if (system) return { ...system, defect: false };
  const message = error instanceof Error ? error.message : String(error);
  const action = "Run it again with SLIPWAY_DEBUG=1 and report the output.";
  return { code: "internal", message, retry: "never", action, defect: true };
}

const systemActions: Readonly<Record<string, string>> = {
  ENOENT: "Check the path.",
  EACCES: "Choose a path that you have access to, or run as another user.",
  EPERM: "Choose a path that you have access to, or run as another user.",
  EISDIR: "Name a file instead of a directory.",
  ENOTDIR: "Name a directory instead of a file.",
  EEXIST: "Remove the existing file, or choose another path.",
  ENOSPC: "Free some space on this machine.",
  EROFS: "Choose a writable path.",
  ELOOP: "Choose a path without symbolic links.",
  EADDRINUSE: "Choose another port with --listen, or --listen 0 for any free port.",
};

/** Failures of local files and ports that a user can fix. */
function systemFailure(error: unknown): Failure | undefined {
  if (!(error instanceof Error) || !("code" in error) || typeof error.code !== "string") return undefined;
  const action = systemActions[error.code];
  if (!action) return undefined;
  return { code: "local_failure", message: error.message, retry: "never", action };
}
