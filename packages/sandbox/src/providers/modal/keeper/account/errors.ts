import { type ErrorCode, SlipwayError } from "@slipway/contract";
import {
  AlreadyExistsError,
  ClientClosedError,
  ConflictError,
  InvalidError,
  NotFoundError,
  ResourceExhaustedError,
  SandboxTimeoutError,
  SnapshotCreationError,
  TimeoutError,
} from "modal";

/** The statuses of gRPC that Modal answers with. */
const grpc = {
  cancelled: 1,
  unknown: 2,
  invalid: 3,
  deadline: 4,
  notFound: 5,
  exists: 6,
  forbidden: 7,
  exhausted: 8,
  precondition: 9,
  outOfRange: 11,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  unauthenticated: 16,
} as const;
type Status = (typeof grpc)[keyof typeof grpc];

/** What was asked of Modal: it decides what a refusal means. */
export type Asked = "create" | "image" | "other";

interface Row {
  readonly status: readonly Status[];
  readonly asked?: Asked;
  /** Only where the status alone is not enough. */
  readonly words?: RegExp;
  readonly code: ErrorCode;
}

/** The first row that fits decides. */
const table: readonly Row[] = [
  { status: [grpc.unauthenticated, grpc.forbidden], code: "provider_credentials_refused" },
  { status: [grpc.exhausted], code: "provider_rate_limited" },
  { status: [grpc.invalid], asked: "create", words: /\bgpu\b/i, code: "unknown_gpu" },
  { status: [grpc.invalid], asked: "create", words: /\bregion/i, code: "region_refused" },
  { status: [grpc.invalid, grpc.outOfRange], asked: "create", code: "invalid_request" },
  // Nothing else that a create names can be missing.
  { status: [grpc.notFound, grpc.precondition], asked: "create", code: "snapshot_expired" },
  { status: [grpc.invalid, grpc.precondition, grpc.notFound], asked: "image", code: "image_build_failed" },
  {
    status: [grpc.unavailable, grpc.deadline, grpc.cancelled, grpc.internal, grpc.unknown],
    code: "provider_unavailable",
  },
  { status: [grpc.notFound, grpc.precondition, grpc.exists], code: "provider_unavailable" },
];

const classes: readonly [new (...given: never[]) => Error, Status][] = [
  [NotFoundError, grpc.notFound],
  [AlreadyExistsError, grpc.exists],
  [InvalidError, grpc.invalid],
  [ConflictError, grpc.precondition],
  [ResourceExhaustedError, grpc.exhausted],
  [SandboxTimeoutError, grpc.deadline],
  [TimeoutError, grpc.deadline],
  [SnapshotCreationError, grpc.internal],
  [ClientClosedError, grpc.cancelled],
];

/** The SDK throws classes of its own for some statuses, and errors of its gRPC library for the others. */
function statusOf(error: unknown): Status | undefined {
  const known = classes.find(([type]) => error instanceof type);
  if (known !== undefined) return known[1];
  const { code } = error as { code?: unknown };
  return Object.values(grpc).find((status) => status === code);
}

/** An error of the SDK as one of ours. A plain one says that a call was cut, or that the SDK refused what it was given. */
export function modalError(error: unknown, asked: Asked, doing: string): SlipwayError {
  if (error instanceof SlipwayError) return error;
  const status = statusOf(error);
  const words = wordsOf(error);
  const row = table.find(
    (each) =>
      status !== undefined &&
      each.status.includes(status) &&
      (each.asked === undefined || each.asked === asked) &&
      (each.words === undefined || each.words.test(words)),
  );
  const otherwise: ErrorCode = asked === "image" ? "image_build_failed" : "provider_unavailable";
  return new SlipwayError(row?.code ?? otherwise, `Modal: ${doing}: ${words}`, { cause: error });
}

export function isNotFound(error: unknown): boolean {
  return statusOf(error) === grpc.notFound;
}

export function isTaken(error: unknown): boolean {
  return statusOf(error) === grpc.exists;
}

/** Whether the same call may succeed soon. */
export function isPassing(error: unknown): boolean {
  const status = statusOf(error);
  return status === grpc.exhausted || status === grpc.unavailable;
}

const mostWords = 2000;

function wordsOf(error: unknown): string {
  const { details } = error as { details?: unknown };
  const words = typeof details === "string" && details !== "" ? details : String((error as Error).message ?? error);
  return words.length > mostWords ? `…${words.slice(-mostWords)}` : words;
}
