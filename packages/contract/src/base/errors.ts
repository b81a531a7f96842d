/** What a caller may do about a failure: `never` means the same call fails again, `later` that it may succeed. */
export type Retry = "never" | "later";

interface ErrorEntry {
  readonly status: number;
  readonly retry: Retry;
  /** What a person can do about it. */
  readonly action: string;
}

/** Every expected failure: code -> HTTP status, retry, what to do. Codes are stable; messages are not. */
export const errorTable = {
  invalid_request: { status: 400, retry: "never", action: "Correct the fields the message names." },
  unauthenticated: { status: 401, retry: "never", action: "Say who you are: use the server's socket, or a key." },
  unknown_image: { status: 400, retry: "never", action: "Use host, debian, node20, node22, node24 or a custom image." },
  invalid_limits: { status: 400, retry: "never", action: "Choose limits inside the ranges the message names." },
  invalid_port: { status: 400, retry: "never", action: "Use a port from 1 to 65535 that the sandbox opens." },
  invalid_network: {
    status: 400,
    retry: "never",
    action: "Write domains as example.com or *.example.com, ranges as 192.0.2.0/24.",
  },
  path_outside: {
    status: 400,
    retry: "never",
    action: "Use a path inside the sandbox, absolute or relative to its workdir.",
  },
  sandbox_not_found: { status: 404, retry: "never", action: "List the sandboxes to see which exist." },
  exec_not_found: { status: 404, retry: "never", action: "List the sandbox's execs to see which exist." },
  snapshot_not_found: { status: 404, retry: "never", action: "List the snapshots to see which exist." },
  file_not_found: { status: 404, retry: "never", action: "Check the path; list its directory." },
  file_exists: { status: 409, retry: "never", action: "Remove the file first, or allow overwriting." },
  not_a_file: { status: 409, retry: "never", action: "Name a regular file." },
  not_a_directory: { status: 409, retry: "never", action: "Name a directory." },
  directory_not_empty: { status: 409, retry: "never", action: "Remove recursively, or empty it first." },
  file_forbidden: {
    status: 403,
    retry: "never",
    action: "The sandbox's user may not do this to that path; choose another.",
  },
  sandbox_not_running: { status: 409, retry: "never", action: "Start the sandbox first." },
  sandbox_wrong_state: { status: 409, retry: "never", action: "Bring the sandbox into the state the message names." },
  sandbox_ended: {
    status: 410,
    retry: "never",
    action: "See the sandbox's end reason; start it again or create another.",
  },
  sandbox_start_failed: {
    status: 500,
    retry: "later",
    action: "Run `slipway doctor`; see the message for the program's own words.",
  },
  snapshot_in_use: { status: 409, retry: "never", action: "Destroy what starts from the snapshot, then delete it." },
  idempotency_conflict: { status: 409, retry: "never", action: "Use a new idempotency key for a different request." },
  exec_not_started: {
    status: 422,
    retry: "never",
    action:
      "Check that the program and the directory to start in exist in the sandbox, and that the program is executable.",
  },
  channel_in_use: { status: 409, retry: "later", action: "Close the other channel, or end the process that holds it." },
  exec_failed: { status: 502, retry: "never", action: "Read the program's own words in the message." },
  patch_refused: {
    status: 409,
    retry: "never",
    action: "The directory has changed, or the changes reach outside of it; apply the saved patch by hand.",
  },
  exec_ended: { status: 409, retry: "never", action: "The command has ended; read its exit." },
  process_limit: { status: 429, retry: "later", action: "End processes in the sandbox, or create it with more." },
  out_of_disk: {
    status: 507,
    retry: "never",
    action: "Remove files, make room on the machine's disk, or create the sandbox with a larger one.",
  },
  too_large: { status: 413, retry: "never", action: "Stay below the size the message names." },
  connection_refused: { status: 502, retry: "later", action: "Start a server on that port inside the sandbox." },
  image_build_failed: {
    status: 422,
    retry: "never",
    action: "Read the build's output in the message and correct the image.",
  },
  ports_used_up: {
    status: 503,
    retry: "never",
    action: "Clear what browsers hold of 127.0.0.1, then remove preview-ports in the state directory.",
  },
  capability_missing: { status: 501, retry: "never", action: "Use a provider that declares this capability." },
  component_missing: {
    status: 500,
    retry: "never",
    action: "Install what the message names; `slipway doctor` checks it.",
  },
  invalid_settings: { status: 500, retry: "never", action: "Correct every setting the message lists." },
  provider_unavailable: { status: 503, retry: "later", action: "Try again; if it stays, run `slipway doctor`." },
  provider_credentials_refused: {
    status: 502,
    retry: "never",
    action: "Check MODAL_TOKEN_ID and MODAL_TOKEN_SECRET, and this machine's clock; `slipway doctor` checks them.",
  },
  provider_rate_limited: { status: 429, retry: "later", action: "Wait, or lower MODAL_MAX_CONCURRENT." },
  unknown_gpu: { status: 400, retry: "never", action: "Name one of the GPUs that the message lists." },
  region_refused: { status: 400, retry: "never", action: "Correct SLIPWAY_MODAL_REGIONS, or leave it out." },
  snapshot_expired: {
    status: 410,
    retry: "never",
    action: "Use another snapshot; the provider no longer has the files of this one.",
  },
  provider_mismatch: {
    status: 409,
    retry: "never",
    action: "Leave the build mode out; or end the server with `slipway down`, set SANDBOX_PROVIDER, and ask again.",
  },
  mode_unavailable: { status: 501, retry: "never", action: "Choose the build mode local or modal." },
  unknown_model: {
    status: 404,
    retry: "never",
    action: "Name a model as provider/model, from a provider that is set up.",
  },
  unknown_agent: { status: 400, retry: "never", action: "Use builtin, claude-code or acp:<name>." },
  missing_key: { status: 401, retry: "never", action: "Set the variable that the message names." },
  unknown_price: {
    status: 422,
    retry: "never",
    action: "Use a known model, or give this one's price in the file that SLIPWAY_PRICES names.",
  },
  run_token_invalid: { status: 401, retry: "never", action: "Use the token of this run." },
  role_forbidden: { status: 403, retry: "never", action: "Use a model of the roles that the run was given." },
  budget_exhausted: { status: 402, retry: "never", action: "Raise the run's budget." },
  model_rate_limited: { status: 429, retry: "later", action: "Wait, or use another model or a higher limit." },
  model_overloaded: { status: 529, retry: "later", action: "Wait, or use another model." },
  model_unreachable: { status: 502, retry: "later", action: "Check the endpoint's address and the network." },
  model_timeout: { status: 504, retry: "later", action: "Wait, or use another model." },
  model_refused: { status: 400, retry: "never", action: "Correct what the model's endpoint complains of." },
  model_key_refused: { status: 502, retry: "never", action: "Check the provider's key on the host." },
  stream_truncated: { status: 502, retry: "later", action: "Ask again; what came before the cut is not an answer." },
  invalid_answer: {
    status: 502,
    retry: "later",
    action: "See the raw text in the error; ask again or use another model.",
  },
  answer_refused: { status: 422, retry: "never", action: "Ask for something else, or use another model." },
  cassette_missing: {
    status: 400,
    retry: "never",
    action: "Record it with SLIPWAY_CASSETTE_MODE=record; the message shows what differs.",
  },
  cassette_version: { status: 400, retry: "never", action: "Record the cassettes again with this version." },
  event_rejected: { status: 400, retry: "never", action: "Send events as docs/run-channel.md tells." },
  rate_limited: { status: 429, retry: "later", action: "Wait as long as Retry-After tells, then send it again." },
  run_ended: { status: 410, retry: "never", action: "The run has ended; see its reason." },
  intent_locked: { status: 409, retry: "never", action: "Start another build with the changed intent." },
  invalid_budget: { status: 400, retry: "never", action: "Give more than what the message says is spent." },
  build_ended: { status: 409, retry: "never", action: "Start another build; this one has its result." },
  build_not_found: { status: 404, retry: "never", action: "List the builds to see which exist." },
  not_ready: {
    status: 409,
    retry: "later",
    action: "Wait for the stage before it; `slipway logs -f` follows the build.",
  },
  route_not_found: { status: 404, retry: "never", action: "Use a path and a method that docs/api.md lists." },
  server_running: {
    status: 409,
    retry: "never",
    action: "Use the server that runs, end it first, or choose another SLIPWAY_STATE_DIR and DATABASE_URL.",
  },
  server_unavailable: { status: 503, retry: "later", action: "Run `slipway server` to see why there is none." },
  build_moved: { status: 409, retry: "later", action: "Read the build again, then decide anew." },
  record_final: { status: 409, retry: "never", action: "Leave the record as it is; what is final is not changed." },
  lease_lost: { status: 409, retry: "never", action: "Another server drives the build; leave it to that one." },
  database_busy: { status: 503, retry: "later", action: "Wait until the other process has ended its work." },
  database_newer: {
    status: 500,
    retry: "never",
    action: "Use the version of Slipway that wrote the database, or a newer one.",
  },
  database_unavailable: {
    status: 503,
    retry: "later",
    action: "Check DATABASE_URL, and that the database runs and can be reached.",
  },
  loop_unavailable: {
    status: 503,
    retry: "later",
    action: "Check RESTATE_URL, and that Restate runs and can be reached; its log says more.",
  },
  git_failed: {
    status: 500,
    retry: "later",
    action: "Read git's own words in the message; `slipway doctor` checks git.",
  },
  repository_refused: { status: 422, retry: "never", action: "Change the repository as the message says." },
  commit_not_found: { status: 404, retry: "never", action: "Name a commit that the build's repository has." },
  branch_not_found: { status: 404, retry: "never", action: "List the build's branches to see which are kept." },
  dispute_not_found: { status: 404, retry: "never", action: "List the build's disputes to see which there are." },
  dispute_settled: {
    status: 409,
    retry: "never",
    action: "List the build's disputes; only one that waits for you is yours.",
  },
  branch_in_use: {
    status: 409,
    retry: "later",
    action: "Wait until its attempt and the merge queue are done with it, or cancel the build.",
  },
  candidate_refused: { status: 422, retry: "never", action: "Correct what the findings name, then offer it again." },
  candidate_exists: { status: 409, retry: "never", action: "Offer another commit as a candidate of its own." },
  install_failed: {
    status: 422,
    retry: "never",
    action: "Read what the install said, then correct the manifest or the lock file.",
  },
  main_moved: { status: 409, retry: "later", action: "Read main again, then merge on top of it." },
  object_not_found: { status: 404, retry: "never", action: "List the objects to see which exist." },
  object_exists: { status: 409, retry: "never", action: "Choose another name, or delete the object first." },
  invalid_object_key: { status: 400, retry: "never", action: "Choose a name that the message allows." },
  storage_refused: {
    status: 502,
    retry: "never",
    action: "Correct the setting that the message names: SLIPWAY_STORAGE, or one of those that begin with AWS_.",
  },
  storage_unavailable: {
    status: 503,
    retry: "later",
    action: "Check SLIPWAY_STORAGE and AWS_ENDPOINT_URL_S3, and that the storage can be reached; then try again.",
  },
  storage_unfit: {
    status: 501,
    retry: "never",
    action: "Use storage that supports conditional writes (If-None-Match), such as S3 or a newer server.",
  },
  storage_damaged: {
    status: 502,
    retry: "never",
    action: "Use another version; what the storage holds is not what was written.",
  },
  version_not_found: { status: 404, retry: "never", action: "List the versions: slipway storage versions <place>." },
  file_not_storable: { status: 422, retry: "never", action: "Rename or remove the file that the message names." },
  aborted: { status: 499, retry: "later", action: "The caller gave up on the call." },
  internal: { status: 500, retry: "never", action: "Report it with the message." },
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof errorTable;

export interface ErrorBody {
  readonly code: ErrorCode;
  readonly message: string;
  readonly retry: Retry;
  readonly action: string;
}

/** The one error class of expected failures. Recognise it by `code`, never by its message. */
export class SlipwayError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "SlipwayError";
    this.code = code;
  }

  get retry(): Retry {
    return errorTable[this.code].retry;
  }

  get status(): number {
    return errorTable[this.code].status;
  }

  toJSON(): ErrorBody {
    const { retry, action } = errorTable[this.code];
    return { code: this.code, message: this.message, retry, action };
  }
}

export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === "string" && Object.hasOwn(errorTable, value);
}

export function hasCode(error: unknown, code: ErrorCode): error is SlipwayError {
  return error instanceof SlipwayError && error.code === code;
}

/** One error for all settings that are wrong, so that one run shows every mistake. */
export function settingsError(mistakes: readonly string[]): SlipwayError {
  const count = mistakes.length === 1 ? "One setting is wrong" : `${mistakes.length} settings are wrong`;
  return new SlipwayError("invalid_settings", [`${count}:`, ...mistakes.map((mistake) => `- ${mistake}`)].join("\n"));
}
