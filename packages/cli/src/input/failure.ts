/** Our own failures; a command's own exit codes are below. */
export const ownFailure = 125;
export const brokenPipeExit = 141;

/** The command line itself is wrong. Carries no provider vocabulary, so that help and parsing stay quick to load. */
export class UsageError extends Error {
  readonly action: string;

  constructor(message: string, action = "Run the command with --help to see what it takes.") {
    super(message);
    this.name = "UsageError";
    this.action = action;
  }
}

/** The user, or the system, told the program to end. */
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

/** What to tell about an error. The stack is for those who asked for it. */
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
  const action = "Run it again with SLIPWAY_DEBUG=1 and report what it prints.";
  return { code: "internal", message, retry: "never", action, defect: true };
}

const systemActions: Readonly<Record<string, string>> = {
  ENOENT: "Check the path.",
  EACCES: "Choose a path that you may use, or run as a user who may.",
  EPERM: "Choose a path that you may use, or run as a user who may.",
  EISDIR: "Name a file instead of a directory.",
  ENOTDIR: "Name a directory instead of a file.",
  EEXIST: "Remove what is there, or choose another path.",
  ENOSPC: "Free some space on this machine.",
  EROFS: "Choose a path that can be written.",
  ELOOP: "Choose a path without symbolic links.",
  EADDRINUSE: "Choose another port with --listen, or --listen 0 for any free one.",
};

/** Failures of this machine's files and ports that a user can do something about. */
function systemFailure(error: unknown): Failure | undefined {
  if (!(error instanceof Error) || !("code" in error) || typeof error.code !== "string") return undefined;
  const action = systemActions[error.code];
  if (!action) return undefined;
  return { code: "local_failure", message: error.message, retry: "never", action };
}
