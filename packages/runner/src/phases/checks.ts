import { createHash } from "node:crypto";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { RunnerEvent, TaskOrder, TaskPhase } from "@slipway/contract";
import { z } from "zod";
import { runCommand } from "../system/command.ts";
import { keepEndsOf } from "../system/output.ts";
import { errorsOf, signatureOf } from "./errors.ts";
import type { Once } from "./journal.ts";
import type { Repository } from "./repository.ts";

/** The failure of one of the project's own commands. */
export const failureSchema = z.strictObject({
  command: z.string(),
  /** How it ended, and its output. */
  text: z.string(),
  /** The output lines that tell what is wrong. */
  errors: z.string(),
  /** The same for the same mistake, whatever differs between runs. */
  signature: z.string(),
});
export type Failure = z.output<typeof failureSchema>;

/** The project's own install, build and tests. Each command is a step: a finished one does not run again. */
export interface Checks {
  /** Where the agents work. Removes what the commands leave there, except ignored files. */
  inWorkspace(step: string, phase: TaskPhase, commit: string): Promise<Failure | null>;
  /** In a fresh directory with only the commit's files. */
  inCleanCheckout(step: string, phase: TaskPhase, commit: string): Promise<Failure | null>;
  /** In the workspace, unless the manifests are unchanged. */
  install(step: string, phase: TaskPhase, commit: string): Promise<Failure | null>;
}

export interface ChecksOptions {
  readonly order: Pick<TaskOrder, "commands" | "commandMs" | "base" | "installed">;
  readonly repository: Repository;
  readonly workdir: string;
  /** The run's own files. */
  readonly directory: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly once: Once;
  remainingMs(): number;
  emit(event: RunnerEvent): Promise<void>;
}

type CommandName = "install" | "build" | "test";

const maxOutputBytes = 64 * 1024;
const maxShownBytes = 12 * 1024;

/** Manifests and lock files of common package managers. */
const manifests: ReadonlySet<string> = new Set([
  ...["package.json", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock"],
  ...["requirements.txt", "pyproject.toml", "poetry.lock", "uv.lock", "Gemfile.lock", "go.sum", "Cargo.lock"],
]);

export function createChecks(options: ChecksOptions): Checks {
  const { order, repository, workdir, signal, once, emit } = options;
  const environment = { ...options.environment, CI: "1" };
  const run = async (phase: TaskPhase, name: CommandName, directory: string) => {
    const command = order.commands[name];
    if (command === undefined) return null;
    const startedAt = performance.now();
    const timeoutMs = Math.min(order.commandMs, options.remainingMs());
    const ended = await runCommand(command, { directory, environment, timeoutMs, maxOutputBytes, signal });
    signal.throwIfAborted();
    const durationMs = Math.round(performance.now() - startedAt);
    const output = keepEndsOf(ended.output, maxShownBytes);
    await emit({ type: "command", phase, command: name, ok: ended.ok, durationMs, output });
    return ended.ok ? null : failureOf(command, ended.end, output);
  };
  const stepped = (step: string, phase: TaskPhase, name: CommandName, directory: string) =>
    once(`${step} ${name}`, failureSchema.nullable(), () => run(phase, name, directory));

  const stampFile = join(workdir, ".slipway", "installed");
  const install = (step: string, phase: TaskPhase, commit: string) =>
    once(`${step} install`, failureSchema.nullable(), async () => {
      const listed = await repository.blobs(commit, manifests);
      if (listed === "") return null;
      const stamp = createHash("sha256").update(`${order.commands.install}\n${listed}`).digest("hex");
      if ((await readFile(stampFile, "utf8").catch(() => "")) === stamp) return null;
      const isThere = order.installed && commit === order.base;
      const failure = isThere ? null : await run(phase, "install", workdir);
      if (failure === null) await keepStamp(stampFile, stamp);
      return failure;
    });
  const cleanInstall = async (step: string, phase: TaskPhase, commit: string, directory: string) =>
    (await repository.blobs(commit, manifests)) === "" ? null : await stepped(step, phase, "install", directory);

  return {
    install,
    async inWorkspace(step, phase, commit) {
      const failure =
        (await install(step, phase, commit)) ??
        (await stepped(step, phase, "build", workdir)) ??
        (await stepped(step, phase, "test", workdir));
      if (!(await repository.isClean())) await repository.restore(commit);
      return failure;
    },
    async inCleanCheckout(step, phase, commit) {
      const directory = join(options.directory, step);
      await once(`${step} checkout`, z.null(), async () => {
        await rm(directory, { recursive: true, force: true });
        await mkdir(directory);
        await repository.extract(commit, directory);
        return null;
      });
      const failure =
        (await cleanInstall(step, phase, commit, directory)) ??
        (await stepped(step, phase, "build", directory)) ??
        (await stepped(step, phase, "test", directory));
      await rm(directory, { recursive: true, force: true, maxRetries: 3 });
      return failure;
    },
  };
}

function failureOf(command: string, end: string, output: string): Failure {
  const errors = errorsOf(output);
  return { command, text: `${output}\n[${end}]`, errors, signature: signatureOf(`${command}\n${end}\n${errors}`) };
}

/** An agent may have deleted the directory. Then the next install just runs again. */
async function keepStamp(path: string, stamp: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true }).catch(() => {});
  await writeFile(path, stamp).catch(() => {});
}
