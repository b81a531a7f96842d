import {
  type ModelRole,
  offerPath,
  openBranchPath,
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
  /** A git bundle with the order's base, for a sandbox whose workspace lacks it. */
  readonly main?: Bytes;
}

/** A run that takes a task through the six phases. Everything it reports and offers is a claim. */
export interface TaskRun extends Run {
  /** The git bundle of a reported offer. Untrusted until it has passed quarantine. */
  readOffer(number: number): AsyncIterable<Uint8Array>;
  /** A git bundle of the branch in its last state, offered or not. Equally untrusted. */
  readBranch(): AsyncIterable<Uint8Array>;
  /** Puts a newer main into the sandbox for the run's next integration. */
  moveMain(main: { readonly commit: string; readonly bundle: Bytes }): Promise<void>;
}

const mainDirectory = "/var/tmp/slipway-main";

/** Starts a task run or attaches to it: see `startRun`. */
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

/** Each level of error escalation has its own model. */
function roleAt(level: number | null): Exclude<ModelRole, "judge"> {
  const roles = ["fix-1", "fix-1", "fix-2", "fix-3", "fix-4"] as const;
  return level === null ? "build" : (roles[level] ?? "fix-4");
}
