import { type ErrorCode, isErrorCode, SlipwayError } from "@slipway/contract";
import { ServerError, Status } from "nice-grpc";

export type StatusName = Exclude<keyof typeof Status, "OK">;

export function refusal(name: StatusName, message: string): ServerError {
  return new ServerError(Status[name], message);
}

export function invalid(message: string): ServerError {
  return refusal("INVALID_ARGUMENT", message);
}

export function notFound(message: string): ServerError {
  return refusal("NOT_FOUND", message);
}

export function found<T>(map: ReadonlyMap<string, T>, id: string, what: string): T {
  const value = map.get(id);
  if (value === undefined) throw notFound(`${what} '${id}' not found`);
  return value;
}

const statusOf: Partial<Record<ErrorCode, StatusName>> = {
  sandbox_not_found: "NOT_FOUND",
  sandbox_ended: "NOT_FOUND",
  sandbox_not_running: "NOT_FOUND",
  snapshot_not_found: "NOT_FOUND",
  file_not_found: "NOT_FOUND",
  exec_ended: "FAILED_PRECONDITION",
  aborted: "CANCELLED",
  provider_unavailable: "UNAVAILABLE",
  process_limit: "RESOURCE_EXHAUSTED",
  out_of_disk: "RESOURCE_EXHAUSTED",
  capability_missing: "UNIMPLEMENTED",
};

/** An error of the sandboxes below, as the client would hear it. */
export function asRefusal(error: unknown): unknown {
  if (!(error instanceof SlipwayError) || !isErrorCode(error.code)) return error;
  const fallback: StatusName = error.status < 500 ? "INVALID_ARGUMENT" : "INTERNAL";
  return refusal(statusOf[error.code] ?? fallback, error.message);
}
