import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { SlipwayError } from "@slipway/contract";
import { readBody } from "@slipway/host";
import { type Asked, askedAt } from "../dialects/index.ts";
import { type ListenAddress, listenOn } from "../listen/listen.ts";
import { createFaultCounts, type FaultCounts } from "./fault.ts";
import { errorOutput, type Output, outputOf } from "./output.ts";
import type { ScriptedProgram, ScriptedRequest } from "./program.ts";
import { scriptedRequest } from "./request.ts";

export interface ScriptedModelOptions {
  /** By the model name in requests. */
  readonly programs: Readonly<Record<string, ScriptedProgram>>;
  /** Port 0 takes any free port. */
  readonly listen: ListenAddress;
  /** Sees every request before its program answers. */
  onRequest?(request: ScriptedRequest, headers: IncomingHttpHeaders): void;
}

/** A model endpoint whose answers are programs. */
export interface ScriptedModel extends AsyncDisposable {
  /** Without `/v1`. */
  readonly baseUrl: string;
  /** Connect here instead of to the address. */
  readonly socketPath: string | undefined;
  /** Drops answers that are under way. */
  close(): Promise<void>;
}

const maxBodyBytes = 64 * 1024 * 1024;
const bodyLimits = {
  maxBytes: maxBodyBytes,
  droppedBytes: maxBodyBytes,
  limitMs: 60_000,
  late: "invalid_request",
} as const;

export async function startScriptedModel(options: ScriptedModelOptions): Promise<ScriptedModel> {
  const faultCounts = createFaultCounts();
  const server = createServer((request, response) => void serve(request, response, options, faultCounts));
  const { address, close } = await listenOn(server, options.listen);
  return { ...addressOf(address), close, [Symbol.asyncDispose]: close };
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  options: ScriptedModelOptions,
  faultCounts: FaultCounts,
): Promise<void> {
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  const asked = request.method === "POST" ? askedAt((request.url ?? "").replace(/\?.*$/s, "")) : undefined;
  if (asked?.wants !== "answer") return void response.writeHead(404).end();
  try {
    const { output, paceMs } = await answer(asked, request, options, faultCounts);
    await play(output, paceMs, response, gone.signal);
  } catch {
    // The client went away: nobody is left to tell.
    response.destroy();
  }
}

/** Turns every failure into an answer. */
async function answer(
  { dialect, fields }: Asked,
  request: IncomingMessage,
  { programs, onRequest }: ScriptedModelOptions,
  faultCounts: FaultCounts,
): Promise<{ output: Output; paceMs: number | undefined }> {
  try {
    const scripted = scriptedRequest(dialect.readRequest({ ...((await readJson(request)) as object), ...fields }));
    const program = Object.hasOwn(programs, scripted.model) ? programs[scripted.model] : undefined;
    if (!program) throw new SlipwayError("unknown_model", `there is no scripted model ${scripted.model}`);
    onRequest?.(scripted, request.headers);
    const turn = faultCounts.apply(scripted, await program(scripted));
    return { output: outputOf(dialect, scripted, turn), paceMs: turn.paceMs };
  } catch (error) {
    return { output: errorOutput(dialect, asSlipwayError(error)), paceMs: undefined };
  }
}

async function play(
  { head, pieces, ending }: Output,
  paceMs: number | undefined,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  if (head) response.writeHead(head.status, head.headers);
  for (const piece of pieces) {
    await write(response, piece);
    if (paceMs !== undefined) await delay(paceMs, undefined, { signal });
  }
  if (ending === "end") response.end();
  if (ending === "break") response.destroy();
}

/** Resolves when the system has taken the piece, so that a slow reader slows the writer. */
function write(response: ServerResponse, piece: string): Promise<void> {
  return new Promise((resolve, reject) => {
    response.write(piece, (error) => (error ? reject(error) : resolve()));
  });
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const body = await readBody(request, bodyLimits);
  try {
    return JSON.parse(body.toString());
  } catch (error) {
    throw new SlipwayError("invalid_request", "the request's body is not JSON", { cause: error });
  }
}

/** A program that throws is an endpoint that fails. */
function asSlipwayError(error: unknown): SlipwayError {
  if (error instanceof SlipwayError) return error;
  return new SlipwayError("internal", `the scripted program failed: ${error instanceof Error ? error.message : error}`);
}

function addressOf(listen: ListenAddress): { baseUrl: string; socketPath: string | undefined } {
  if ("path" in listen) return { baseUrl: "http://scripted.internal", socketPath: listen.path };
  return { baseUrl: `http://${listen.host}:${listen.port}`, socketPath: undefined };
}
