import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { type CreateSandboxInput, SlipwayError, type SnapshotId } from "@slipway/contract";
import type { CallOptions, Exec, OwnedSandbox, Sandbox, SandboxProvider } from "../provider.ts";
import { readText, run } from "../run.ts";
import { browse } from "./browse.ts";
import { deployLabel, type Made, snapshotName } from "./clean-up.ts";

export const trialSteps = ["create", "exec", "files", "preview", "snapshot", "restore"] as const;

/** Ends by itself even if nobody is left to end it. */
export const trialLimits = { cpu: 1, memoryMb: 1024, diskMb: 1024, lifetimeMs: 15 * 60_000 };
const port = 3000;
const directory = "/workspace/slipway-deploy";

export interface TrialParts extends CallOptions {
  readonly provider: SandboxProvider;
  readonly image: CreateSandboxInput["image"] | string;
  readonly made: Made;
  readonly tunnelCa?: string | undefined;
  step<T>(name: (typeof trialSteps)[number], work: () => Promise<T>, tell: (result: T) => string): Promise<T>;
}

/** Uses a sandbox for everything that builds need. Returns where it could be seen; null: the provider shows nothing. */
export async function runTrial(parts: TrialParts): Promise<string | null> {
  const { provider, made, step, signal } = parts;
  const proof = randomBytes(16).toString("hex");
  const create = async (more: CreateSandboxInput): Promise<OwnedSandbox> => {
    const labels = { purpose: "deploy", [deployLabel]: made.id };
    const request = { ...trialLimits, idleMs: null, onEnd: "destroy" as const, ports: [port], labels, ...more };
    const sandbox = await provider.create(request, { signal });
    made.sandboxes.push({ id: sandbox.id, startedAt: performance.now() });
    return sandbox;
  };
  const image = parts.image as CreateSandboxInput["image"];
  const sandbox = await step(
    "create",
    () => create({ image }),
    ({ id }) => id,
  );
  await step(
    "exec",
    () => proveExec(sandbox, signal),
    (ms) => `a command takes ${ms} ms`,
  );
  await step(
    "files",
    () => proveFiles(sandbox, proof, signal),
    (text) => text,
  );
  const origin = provider.capabilities.previewUrls
    ? await step(
        "preview",
        () => provePreview(sandbox, proof, parts),
        (address) => `answers at ${address}`,
      )
    : null;
  const snapshot = await step(
    "snapshot",
    () => takeSnapshot(sandbox, made, signal),
    (id) => id,
  );
  await step(
    "restore",
    () => proveRestore(() => create({ snapshot }), proof, signal),
    (id) => `${id} has the files`,
  );
  return origin;
}

const execs = 5;

/** The median, in milliseconds. */
async function proveExec(sandbox: Sandbox, signal: AbortSignal | undefined): Promise<number> {
  const took: number[] = [];
  for (let i = 0; i < execs; i++) {
    const startedAt = performance.now();
    const { stdout, exitCode } = await run(sandbox, 'echo "$((6 * 7))"', { signal });
    if (exitCode !== 0 || stdout.trim() !== "42") throw new SlipwayError("exec_failed", "A command did not answer 42.");
    took.push(performance.now() - startedAt);
  }
  return Math.round(took.sort((a, b) => a - b)[Math.floor(execs / 2)] ?? 0);
}

const fileBytes = 8 * 1024 * 1024;

async function proveFiles({ files }: Sandbox, proof: string, signal: AbortSignal | undefined): Promise<string> {
  const content = randomBytes(fileBytes);
  const startedAt = performance.now();
  await files.write(`${directory}/data`, content, { signal });
  const parts: Uint8Array[] = [];
  for await (const part of files.read(`${directory}/data`, { signal })) parts.push(part);
  if (!Buffer.concat(parts).equals(content))
    throw new SlipwayError("exec_failed", "A file came back with other bytes.");
  const seconds = (performance.now() - startedAt) / 1000;
  await files.write(`${directory}/index.html`, proof, { signal });
  return `8 MiB there and back, ${((2 * fileBytes) / 1024 / 1024 / seconds).toFixed(1)} MiB/s`;
}

/** With whatever the image has. */
const server = `
if command -v node >/dev/null; then exec node -e '
const { readFileSync } = require("node:fs");
require("node:http").createServer((_, answer) => answer.end(readFileSync("index.html")))
  .listen(${port}, "0.0.0.0", () => console.log("ready"))'
fi
exec python3 -u -m http.server ${port}`;

const previewMs = 60_000;
const retryMs = 250;

async function provePreview(sandbox: Sandbox, proof: string, { tunnelCa, signal }: TrialParts): Promise<string> {
  const limit = AbortSignal.timeout(previewMs);
  const call = { signal: signal === undefined ? limit : AbortSignal.any([signal, limit]) };
  await using exec = await sandbox.exec({ shell: server, cwd: directory, background: true }, call);
  await saysSomething(exec, call);
  const url = await sandbox.previewUrl(port, call);
  const { origin } = new URL(url);
  for (;;) {
    const seen = await browse(url, { ca: tunnelCa, ...call }).catch((error: Error) => error.message);
    if (seen === proof) return origin;
    if (limit.aborted) {
      const message = `${origin} did not show the test sandbox: ${seen.slice(0, 200)}`;
      throw new SlipwayError("connection_refused", message);
    }
    await delay(retryMs, undefined, call).catch(() => signal?.throwIfAborted());
  }
}

async function saysSomething(exec: Exec, call: CallOptions): Promise<void> {
  for await (const _ of exec.output(call)) return;
  throw new SlipwayError("exec_failed", "The test sandbox has neither node nor python3 to serve a page with.");
}

async function takeSnapshot(sandbox: Sandbox, made: Made, signal: AbortSignal | undefined): Promise<SnapshotId> {
  const expiresInMs = 2 * trialLimits.lifetimeMs;
  return (await sandbox.snapshot({ name: snapshotName(made), expiresInMs, signal })).id;
}

async function proveRestore(create: () => Promise<Sandbox>, proof: string, signal: AbortSignal | undefined) {
  const { id, files } = await create();
  if ((await readText(files, `${directory}/index.html`, { signal })) === proof) return id;
  throw new SlipwayError("exec_failed", "A sandbox that was restored from a snapshot has other files.");
}
