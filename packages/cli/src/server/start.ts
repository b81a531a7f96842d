import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, closeSync, mkdirSync, openSync, readFileSync, renameSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { isErrorCode, SlipwayError, serverFiles } from "@slipway/contract";
import { noteSettings, type ServerStart } from "./started-with.ts";

/** A program of its own, started by path: the command line imports nothing of it. */
const program = fileURLToPath(new URL("../../../server/src/main.ts", import.meta.url));

/** Starts a server that outlives this program. Returns when it is ready; throws the error it reports. */
export async function startInBackground({ stateDir, environment }: ServerStart, signal: AbortSignal): Promise<void> {
  const log = openLog(stateDir);
  const child = spawnServer({ stateDir, environment }, { detached: true, cwd: "/", stderr: log.descriptor });
  closeSync(log.descriptor);
  const stopWaiting = () => child.stdout?.destroy();
  signal.addEventListener("abort", stopWaiting, { once: true });
  try {
    await untilReady(child, () => lastLines(log.path, log.size));
    await noteSettings({ stateDir, environment }, child.pid);
  } finally {
    signal.removeEventListener("abort", stopWaiting);
    stopWaiting();
    child.unref();
  }
}

export function spawnServer(
  { stateDir, environment }: ServerStart,
  { stderr, ...options }: { detached?: boolean; cwd?: string; stderr: number | "inherit" },
): ChildProcess {
  makeStateDirectory(stateDir);
  const compileCache = join(stateDir, "compile-cache");
  // Compiled code that others could write would run with this user's rights, and Node makes the directory as the umask is.
  mkdirSync(compileCache, { recursive: true, mode: 0o700 });
  chmodSync(compileCache, 0o700);
  return spawn(process.execPath, ["--disable-warning=ExperimentalWarning", program], {
    ...options,
    stdio: ["ignore", "pipe", stderr],
    env: {
      ...environment,
      ...placesFromHere(environment),
      SLIPWAY_STATE_DIR: stateDir,
      NODE_COMPILE_CACHE: compileCache,
    },
  });
}

/** Resolves the user's relative paths: the server runs in another directory. */
function placesFromHere(environment: ServerStart["environment"]): Record<string, string> {
  const places = ["SLIPWAY_PRICES", "SLIPWAY_CASSETTES"].flatMap((name) => {
    const path = environment[name];
    return path ? [[name, resolve(path)] as const] : [];
  });
  return Object.fromEntries(places);
}

/** The server prints one line: that it is ready, or its error. If it prints nothing, the error shows `words`. */
export async function untilReady(child: ChildProcess, words: () => string): Promise<void> {
  const failed = once(child, "error").then(([error]) => Promise.reject(error as Error));
  const said = (async () => {
    let text = "";
    for await (const chunk of child.stdout ?? []) {
      text += chunk;
      if (text.includes("\n")) break;
    }
    return text;
  })();
  failed.catch(() => undefined);
  const line = await Promise.race([said, failed]);
  if (line === "") throw new SlipwayError("server_unavailable", `The server did not start: ${words()}`);
  const { error } = JSON.parse(line) as { error?: { code: unknown; message: string } };
  if (error) throw new SlipwayError(isErrorCode(error.code) ? error.code : "server_unavailable", error.message);
}

const maxLogBytes = 10 * 1024 * 1024;

/** As root, sandboxes of another user traverse the state directory. */
function makeStateDirectory(stateDir: string): void {
  const mode = process.getuid?.() === 0 ? 0o711 : 0o700;
  if (mkdirSync(stateDir, { recursive: true, mode }) !== undefined) chmodSync(stateDir, mode);
}

function openLog(stateDir: string): { path: string; descriptor: number; size: number } {
  makeStateDirectory(stateDir);
  const path = join(stateDir, serverFiles.log);
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  if (size > maxLogBytes) renameSync(path, `${path}.old`);
  return { path, descriptor: openSync(path, "a", 0o600), size: size > maxLogBytes ? 0 : size };
}

const shownLines = 20;

function lastLines(path: string, from: number): string {
  const lines = readFileSync(path).subarray(from).toString("utf8").trimEnd().split("\n").slice(-shownLines);
  return `the end of ${path}:\n${lines.join("\n")}`;
}
