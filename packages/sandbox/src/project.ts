import { addAbortSignal } from "node:stream";
import { setTimeout as wait } from "node:timers/promises";
import { hasCode, SlipwayError } from "@slipway/contract";
import { throwIfAborted } from "./abort.ts";
import {
  type Manifest,
  type ProjectFacts,
  parseManifest,
  planDevServer,
  planInstall,
  planScript,
  planTest,
} from "./project-plan.ts";
import type { CallOptions, Exec, RestrictedSandbox } from "./provider.ts";
import { type RunResult, readText, run } from "./run.ts";

export const projectPath = "/workspace/project";
export const devServerPort = 5173;

export interface ProjectOptions extends CallOptions {
  /** The project's directory. */
  readonly path?: string;
  /** For each command. */
  readonly timeoutMs?: number;
}

export interface CloneOptions extends ProjectOptions {
  /** A branch or a tag; by default the remote's. */
  readonly ref?: string;
  /** How many commits; by default all. */
  readonly depth?: number;
}

/** A command that ran to its end. A failure is a result, not an exception. */
export interface ProjectStep extends RunResult {
  readonly argv: readonly string[];
}

export interface DevServerOptions extends CallOptions {
  readonly path?: string;
  readonly port?: number;
  /** How long the server may take to answer. */
  readonly readyMs?: number;
  readonly clock?: { sleep(ms: number, signal?: AbortSignal): Promise<unknown> };
}

export interface DevServer {
  readonly exec: Exec;
  readonly port: number;
}

const longTimeoutMs = 900_000;
const defaultReadyMs = 60_000;
const realClock = { sleep: (ms: number, signal?: AbortSignal) => wait(ms, undefined, signal && { signal }) };

/** Clones a repository into the project's directory, without password prompts and remote helpers. */
export async function cloneRepo(
  sandbox: RestrictedSandbox,
  url: string,
  options: CloneOptions = {},
): Promise<ProjectStep> {
  const { ref, depth, path = projectPath } = options;
  if (url.startsWith("-") || ref?.startsWith("-")) {
    throw new SlipwayError("invalid_request", "The address or ref of a repository must not start with a dash.");
  }
  const limits = [
    ...(ref === undefined ? [] : ["--branch", ref]),
    ...(depth === undefined ? [] : ["--depth", String(depth)]),
  ];
  const argv = ["git", "-c", "protocol.ext.allow=never", "clone", "--no-hardlinks", ...limits, "--", url, path];
  return await step(sandbox, argv, { ...options, path: "/", env: { GIT_TERMINAL_PROMPT: "0" } });
}

/** Installs the project's dependencies, one step per command, up to the first that fails. */
export async function installDependencies(
  sandbox: RestrictedSandbox,
  options: ProjectOptions = {},
): Promise<ProjectStep[]> {
  const steps: ProjectStep[] = [];
  for (const argv of planInstall(await readFacts(sandbox, options))) {
    const done = await step(sandbox, argv, { timeoutMs: longTimeoutMs, ...options, env: { CI: "1" } });
    steps.push(done);
    if (done.exitCode !== 0) break;
  }
  return steps;
}

/** Null: the project has nothing to build. */
export async function buildProject(
  sandbox: RestrictedSandbox,
  options: ProjectOptions = {},
): Promise<ProjectStep | null> {
  const argv = planScript(await readFacts(sandbox, options), "build");
  return argv === null ? null : await step(sandbox, argv, { timeoutMs: longTimeoutMs, ...options, env: { CI: "1" } });
}

/** Null: the project has no tests. */
export async function testProject(
  sandbox: RestrictedSandbox,
  options: ProjectOptions & { readonly env?: Readonly<Record<string, string>> } = {},
): Promise<ProjectStep | null> {
  const argv = planTest(await readFacts(sandbox, options));
  const env = { CI: "1", ...options.env };
  return argv === null ? null : await step(sandbox, argv, { timeoutMs: longTimeoutMs, ...options, env });
}

/** Starts the dev server in the background and resolves when its port answers. Kills a server that does not get there. */
export async function startDevServer(sandbox: RestrictedSandbox, options: DevServerOptions = {}): Promise<DevServer> {
  const { path = projectPath, port = devServerPort, signal } = options;
  const command = planDevServer(await readFacts(sandbox, options), port);
  if (command === null)
    throw new SlipwayError("exec_not_started", `${path} has no dev server: no dev or start script, no index.html.`);
  const exec = await sandbox.exec(
    { argv: [...command.argv], env: command.env, cwd: path, background: true },
    { signal },
  );
  try {
    await untilAnswers(sandbox, exec, port, options);
    return { exec, port };
  } catch (error) {
    await exec.kill();
    if (!hasCode(error, "connection_refused")) throw error;
    throw new SlipwayError(error.code, `${error.message} ${await lastWords(sandbox, exec)}`.trim());
  }
}

async function untilAnswers(
  sandbox: RestrictedSandbox,
  exec: Exec,
  port: number,
  options: DevServerOptions,
): Promise<void> {
  const { clock = realClock, readyMs = defaultReadyMs, signal } = options;
  const [answered, over] = [new AbortController(), new AbortController()];
  clock.sleep(readyMs, answered.signal).then(
    () => over.abort(),
    () => undefined,
  );
  const stop = signal === undefined ? over.signal : AbortSignal.any([over.signal, signal]);
  try {
    while (!(await answers(sandbox, port, stop))) {
      throwIfAborted(signal);
      const { exit } = (await sandbox.execs({ signal })).find(({ id }) => id === exec.id) ?? { exit: null };
      if (exit !== null) {
        const words = await lastWords(sandbox, exec);
        throw new SlipwayError("exec_ended", `The dev server ended before it answered: ${words}`);
      }
      if (stop.aborted) {
        const text = `The dev server did not answer on port ${port} within ${readyMs} ms.`;
        throw new SlipwayError("connection_refused", text);
      }
      await clock.sleep(100);
    }
  } finally {
    answered.abort();
  }
}

/**
 * Any bytes are an answer, whatever their status. A server that accepts the connection and stays silent has not answered when
 * `stop` is aborted.
 */
async function answers(sandbox: RestrictedSandbox, port: number, stop: AbortSignal): Promise<boolean> {
  try {
    const pipe = await sandbox.connect(port, { signal: stop });
    try {
      pipe.on("error", () => undefined);
      addAbortSignal(stop, pipe);
      pipe.write(`GET / HTTP/1.1\r\nhost: localhost:${port}\r\nconnection: close\r\n\r\n`);
      for await (const bytes of pipe) return (bytes as Uint8Array).length > 0;
      return false;
    } finally {
      pipe.destroy();
    }
  } catch (error) {
    if (!stop.aborted && error instanceof SlipwayError && !hasCode(error, "connection_refused")) throw error;
    return false;
  }
}

/** The end of a command's output. Waits for a command that still runs. */
export async function lastWords(sandbox: RestrictedSandbox, exec: Exec): Promise<string> {
  const words: Uint8Array[] = [];
  for await (const chunk of (await sandbox.attach(exec.id)).output())
    if (chunk.type !== "output_truncated") words.push(chunk.data);
  return Buffer.concat(words).subarray(-2000).toString();
}

async function readFacts(
  sandbox: RestrictedSandbox,
  { path = projectPath, signal }: ProjectOptions,
): Promise<ProjectFacts> {
  const names = new Set<string>();
  for await (const entry of sandbox.files.list(path, { signal }))
    names.add(entry.path.slice(entry.path.lastIndexOf("/") + 1));
  let manifest: Manifest | null = null;
  if (names.has("package.json"))
    manifest = parseManifest(await readText(sandbox.files, `${path}/package.json`, { signal }));
  return { names, manifest };
}

async function step(
  sandbox: RestrictedSandbox,
  argv: readonly string[],
  { path = projectPath, timeoutMs, env, signal }: ProjectOptions & { env: Record<string, string> },
): Promise<ProjectStep> {
  // Errors come last.
  return { argv, ...(await run(sandbox, argv, { cwd: path, env, keep: "end", timeoutMs, signal })) };
}
