import {
  type ModelRole,
  offerPath,
  openBranchPath,
  type RunEnd,
  type RunId,
  type RunTaskInput,
  SlipwayError,
  type TaskOrderInput,
  taskOrderSchema,
} from "@slipway/contract";
import type { Bytes } from "@slipway/sandbox";
import { type Run, type StartRun, startRun } from "./start.ts";

export interface StartTaskRun extends Omit<StartRun, "grant"> {
  readonly id: RunId;
  readonly budgetMicroUsd: number;
  readonly task: Pick<RunTaskInput, "agent" | "workers" | "workdir" | "context" | "permissions" | "limits">;
  readonly order: Omit<TaskOrderInput, "bundle" | "fixModel">;
  /** A git bundle with the order's base, for a sandbox whose workspace has it not. */
  readonly main?: Bytes;
}

/** A run that takes a task through the six phases. What it offers, and all that it says, is a claim. */
export interface TaskRun extends Run {
  /** The git bundle of an offer that was reported. Hostile until it has been through quarantine. */
  readOffer(number: number): AsyncIterable<Uint8Array>;
  /** One of its branch as it last was, offered or not. As hostile. */
  readBranch(): AsyncIterable<Uint8Array>;
  /** Puts a newer main into the sandbox, for the run's next integration. */
  moveMain(main: { readonly commit: string; readonly bundle: Bytes }): Promise<void>;
}

const mainDirectory = "/var/tmp/slipway-main";

/** Starts a task run, or finds it again: see `startRun`. */
export async function startTaskRun({
  id,
  budgetMicroUsd,
  task,
  order,
  main,
  ...options
}: StartTaskRun): Promise<TaskRun> {
  const bundle = `${mainDirectory}/base.bundle`;
  const role = roleAt(order.level ?? null);
  const fixModel = role === "build" ? "fix-1" : role;
  const parsed = taskOrderSchema.safeParse({ ...order, fixModel, ...(main !== undefined && { bundle }) });
  if (!parsed.success) {
    const mistakes = parsed.error.issues.map((issue) => `order.${issue.path.join(".")}: ${issue.message}`);
    throw new SlipwayError("invalid_request", mistakes.join("; "));
  }
  const { files } = options.sandbox;
  if (main !== undefined) await files.write(bundle, main);
  const run = await startRun({
    ...options,
    grant: {
      id,
      budgetMicroUsd,
      roles: [...new Set([role, fixModel] as const)],
      task: { ...task, prompt: "", model: role, order: parsed.data },
    },
  });
  return {
    ...run,
    readOffer: (number) => files.read(offerPath(parsed.data, number)),
    readBranch: () => files.read(openBranchPath(parsed.data)),
    async moveMain({ commit, bundle: bytes }) {
      const path = `${mainDirectory}/${commit}.bundle`;
      await files.write(path, bytes);
      await run.send({ type: "main", commit, bundle: path });
    },
  };
}

/** Each level of error escalation has a model of its own. */
function roleAt(level: number | null): Exclude<ModelRole, "judge"> {
  const roles = ["fix-1", "fix-1", "fix-2", "fix-3", "fix-4"] as const;
  return level === null ? "build" : (roles[level] ?? "fix-4");
}

/** What the end of a task run means for its attempt. */
export type AttemptEnd =
  | { readonly type: "merged" }
  | { readonly type: "cancelled" }
  /** By its own fault: it is tried again at the next level. */
  | { readonly type: "failed"; readonly error: string }
  /** Nothing that the attempt could help. `by`: a model that does not answer for now. */
  | { readonly type: "interrupted"; readonly by?: "model"; readonly reason: string }
  | { readonly type: "out-of-budget" }
  /** The sandbox or its runner is gone. */
  | { readonly type: "died" };

/** `completed` is the runner's word only: whether something was merged, the host knows. */
export function attemptEnd({ reason, message }: RunEnd): AttemptEnd {
  const told = message === "" ? reason : `${reason}: ${message}`;
  switch (reason) {
    case "completed":
      return { type: "merged" };
    case "cancelled":
      return { type: "cancelled" };
    case "budget":
      return { type: "out-of-budget" };
    case "runner_lost":
      return { type: "died" };
    case "network":
    case "overloaded":
    case "rate_limited":
      return { type: "interrupted", by: "model", reason: told };
    case "auth":
    case "model_not_found":
    case "truncated":
      return { type: "interrupted", reason: told };
    default:
      return { type: "failed", error: told };
  }
}
