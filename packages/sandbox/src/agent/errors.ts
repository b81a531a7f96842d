import { type ErrorCode, SlipwayError } from "@slipway/contract";

const errnos: Partial<Record<ErrorCode, string>> = {
  file_not_found: "ENOENT",
  file_exists: "EEXIST",
  not_a_file: "EISDIR ENOTSUP EOPNOTSUPP ENXIO",
  not_a_directory: "ENOTDIR",
  directory_not_empty: "ENOTEMPTY",
  file_forbidden: "EACCES EPERM EROFS EBUSY ETXTBSY",
  path_outside: "ELOOP EXDEV",
  out_of_disk: "ENOSPC EDQUOT EFBIG",
  process_limit: "EAGAIN ENOMEM EMFILE ENFILE",
  invalid_request: "ENAMETOOLONG EINVAL EBADMSG EILSEQ ENOTTY",
  too_large: "E2BIG EOVERFLOW",
  connection_refused: "ECONNREFUSED",
  exec_ended: "ESRCH",
};
const codes = new Map(
  Object.entries(errnos).flatMap(([code, names]) => names.split(" ").map((name) => [name, code as ErrorCode])),
);

/** Errnos of a program that cannot be executed. For files the same errnos mean something else. */
const notExecutable = new Set(
  "ENOENT EACCES EPERM ENOEXEC ENOTDIR EISDIR ELOOP ENAMETOOLONG ELIBBAD ETXTBSY EIO".split(" "),
);

export interface AgentFailure {
  readonly errno: string;
  readonly message: string;
}

export function decodeFailure(payload: Buffer): AgentFailure {
  const end = payload.indexOf(0);
  if (end < 0) return { errno: "EIO", message: payload.toString() };
  return { errno: payload.toString("latin1", 0, end), message: payload.toString("utf8", end + 1) };
}

/** @param subject what the operation was about: a path, a port or an exec */
export function fileError(payload: Buffer, subject: string): SlipwayError {
  const { errno, message } = decodeFailure(payload);
  return new SlipwayError(codes.get(errno) ?? "internal", `${subject}: ${errno} (${message})`);
}

export function startError({ errno, message }: AgentFailure, program: string, cwd: string): SlipwayError {
  const code = notExecutable.has(errno) ? "exec_not_started" : (codes.get(errno) ?? "internal");
  const what = message === "working directory" ? `its working directory ${cwd}` : message;
  return new SlipwayError(code, `${program} did not start: ${what}: ${errno}`);
}

/** @param what what had not happened yet */
export function cutError(what: string, cause?: unknown): SlipwayError {
  return new SlipwayError("provider_unavailable", `The connection to the sandbox ended before ${what}.`, { cause });
}
