import { type ErrorCode, SlipwayError } from "@slipway/contract";

const codes: Readonly<Record<string, ErrorCode>> = {
  ENOENT: "file_not_found",
  EEXIST: "file_exists",
  EISDIR: "not_a_file",
  ENOTSUP: "not_a_file",
  EOPNOTSUPP: "not_a_file",
  ENXIO: "not_a_file",
  ENOTDIR: "not_a_directory",
  ENOTEMPTY: "directory_not_empty",
  EACCES: "file_forbidden",
  EPERM: "file_forbidden",
  EROFS: "file_forbidden",
  EBUSY: "file_forbidden",
  ETXTBSY: "file_forbidden",
  ELOOP: "path_outside",
  EXDEV: "path_outside",
  ENOSPC: "out_of_disk",
  EDQUOT: "out_of_disk",
  EFBIG: "out_of_disk",
  EAGAIN: "process_limit",
  ENOMEM: "process_limit",
  EMFILE: "process_limit",
  ENFILE: "process_limit",
  ENAMETOOLONG: "invalid_request",
  EINVAL: "invalid_request",
  EBADMSG: "invalid_request",
  EILSEQ: "invalid_request",
  E2BIG: "too_large",
  EOVERFLOW: "too_large",
  ECONNREFUSED: "connection_refused",
  ESRCH: "exec_ended",
  ENOTTY: "invalid_request",
};

/** What a program that can not be executed answers with; the same numbers mean something else for files. */
const startCodes: Readonly<Record<string, ErrorCode>> = {
  ENOENT: "exec_not_started",
  EACCES: "exec_not_started",
  EPERM: "exec_not_started",
  ENOEXEC: "exec_not_started",
  ENOTDIR: "exec_not_started",
  EISDIR: "exec_not_started",
  ELOOP: "exec_not_started",
  ENAMETOOLONG: "exec_not_started",
  ELIBBAD: "exec_not_started",
  ETXTBSY: "exec_not_started",
  EIO: "exec_not_started",
  E2BIG: "too_large",
};

export interface AgentFailure {
  readonly errno: string;
  readonly message: string;
}

export function decodeFailure(payload: Buffer): AgentFailure {
  const end = payload.indexOf(0);
  if (end < 0) return { errno: "EIO", message: payload.toString() };
  return { errno: payload.toString("latin1", 0, end), message: payload.toString("utf8", end + 1) };
}

/** @param subject what it was about: a path, or a program */
export function fileError(failure: AgentFailure, subject: string): SlipwayError {
  return new SlipwayError(codes[failure.errno] ?? "internal", `${subject}: ${failure.errno} (${failure.message})`);
}

export function startError(failure: AgentFailure, program: string, cwd: string): SlipwayError {
  const code = startCodes[failure.errno] ?? codes[failure.errno] ?? "internal";
  const what = failure.message === "working directory" ? `its working directory ${cwd}` : failure.message;
  return new SlipwayError(code, `${program} did not start: ${what}: ${failure.errno}`);
}

export function abortedError(signal: AbortSignal): SlipwayError {
  return new SlipwayError("aborted", "the call was aborted", { cause: signal.reason });
}

export function cutError(what: string, cause?: unknown): SlipwayError {
  return new SlipwayError("provider_unavailable", `the connection to the sandbox ended before ${what}`, { cause });
}
