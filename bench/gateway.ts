import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { Agent, type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { inTurn, type Report, ratio, type Subject } from "./measure.ts";

/** What stands between an agent and the endpoint: the gateway, or a proxy that does nothing but pipe. */
interface Between {
  readonly socketPath: string;
  readonly headers: Readonly<Record<string, string>>;
}

interface Gateway extends Between {
  readonly pid: number;
  readonly hostToken: string;
}

interface Bench {
  readonly gateway: Gateway;
  /** As a server has it. */
  readonly ofServer: Gateway;
  readonly pipe: Between;
  readonly upstreamUrl: string;
  readonly report: Report;
}

/** What the endpoint is asked to do: see gateway-upstream.ts. */
type Kind = "short" | "long" | "together";

/** Each figure with the name it reports; docs/figures.md says what it means. */
const figures: Record<string, (bench: Bench) => Promise<void>> = {
  first_token_vs_pipe: firstTokenVersusPipe,
  first_token_of_server_vs_pipe: firstTokenOfServerVersusPipe,
  stream_rate_vs_pipe: streamRateVersusPipe,
  streams_500: manyStreams,
  metering_error: meteringError,
};

/** Client, gateway, proxy and endpoint are processes of their own, as they are in use. */
export async function run(report: Report, only: ReadonlySet<string>): Promise<void> {
  const scratch = mkdtempSync("/var/tmp/slipway-bench-");
  const children: ChildProcess[] = [];
  const start = async <T>(program: URL, ...argv: string[]): Promise<T & { readonly pid: number }> => {
    const child = fork(program, argv);
    children.push(child);
    const failed = once(child, "exit").then(() => Promise.reject(new Error(`${program.pathname} did not start`)));
    const [told] = (await Promise.race([once(child, "message"), failed])) as [T];
    return { ...told, pid: child.pid ?? 0 };
  };
  try {
    const { url: upstreamUrl } = await start<{ url: string }>(new URL("gateway-upstream.ts", import.meta.url));
    const pipePath = join(scratch, "pipe.sock");
    await start(new URL("gateway-pipe.ts", import.meta.url), upstreamUrl, pipePath);
    const startGateway = async (books: "file" | "store") => {
      const directory = mkdtempSync(join(scratch, books));
      const program = new URL("gateway-process.ts", import.meta.url);
      const told = await start<ToldGateway>(program, upstreamUrl, directory, books);
      return { ...told, headers: { authorization: `Bearer ${told.token}` } };
    };
    const [gateway, ofServer] = [await startGateway("file"), await startGateway("store")];
    const bench = { gateway, ofServer, pipe: { socketPath: pipePath, headers: {} }, upstreamUrl, report };
    for (const [name, measure] of Object.entries(figures)) {
      if (only.size === 0 || only.has(name)) await measure(bench);
    }
  } finally {
    for (const child of children) child.kill();
    rmSync(scratch, { recursive: true, force: true });
  }
}

interface ToldGateway {
  readonly socketPath: string;
  readonly token: string;
  readonly hostToken: string;
}

/** A gateway runs for days: so much is asked of it before that its code is compiled. */
const warmUp = 500;

async function firstTokenVersusPipe({ gateway, pipe, report }: Bench): Promise<void> {
  const measured = await inTurn(1000, firstToken(gateway), firstToken(pipe), warmUp);
  ratio(report, "first_token_vs_pipe", { atMost: 1.4 }, measured);
}

/** Before a request is sent, the money for it is reserved in the store, which waits for the disk. */
async function firstTokenOfServerVersusPipe({ ofServer, pipe, report }: Bench): Promise<void> {
  const measured = await inTurn(1000, firstToken(ofServer), firstToken(pipe), warmUp);
  ratio(report, "first_token_of_server_vs_pipe", {}, measured);
}

async function streamRateVersusPipe({ gateway, pipe, report }: Bench): Promise<void> {
  const [ours, baseline] = [gateway, pipe].map((between) => ({ run: () => ask(between, "long").whole }));
  if (ours === undefined || baseline === undefined) return;
  const measured = await inTurn(20, ours, baseline);
  const value = measured.baseline / measured.ours;
  report({ name: "stream_rate_vs_pipe", value, unit: "rate", ...measured, bound: { atLeast: 0.6 } });
}

const streams = 500;

/** The endpoint ends none of them before all have begun. */
async function manyStreams({ gateway, report }: Bench): Promise<void> {
  const all = await Promise.allSettled(Array.from({ length: streams }, () => ask(gateway, "together").whole));
  const value = all.filter(({ status }) => status === "fulfilled").length;
  const figure = { baseline: null, n: streams };
  report({ name: "streams_500", value, unit: "whole", ours: value, ...figure, bound: { atLeast: streams } });
  const peak = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${gateway.pid}/status`, "utf8"))?.[1];
  const megabytes = Number(peak) / 1024;
  report({ name: "rss_mb", value: megabytes, unit: "MB", ours: megabytes, ...figure, bound: { atMost: 400 } });
}

/** Tokens that the gateway's books have too many or too few, over all that the endpoint has answered so far. */
async function meteringError({ gateway, ofServer, upstreamUrl, report }: Bench): Promise<void> {
  await Promise.all(Array.from({ length: 100 }, () => ask(gateway, "short").whole));
  const counted = [await countedBy(gateway), await countedBy(ofServer)];
  const reported = await getJson<Counted>(request(upstreamUrl, { agent: new Agent() }));
  const kinds = ["input", "output", "cacheRead", "cacheWrite"] as const;
  const value = kinds.reduce((sum, kind) => {
    const inBooks = counted.reduce((tokens, { usage }) => tokens + usage[kind], 0);
    return sum + Math.abs(reported.usage[kind] - inBooks);
  }, 0);
  const n = reported.requests;
  report({ name: "metering_error", value, unit: "tokens", ours: value, baseline: null, n, bound: { atMost: 0 } });
}

async function countedBy({ socketPath, hostToken }: Gateway): Promise<Counted> {
  const headers = { authorization: `Bearer ${hostToken}` };
  const { providers } = await getJson<{ providers: Counted[] }>(request({ socketPath, path: "/health", headers }));
  const unused = { provider: "anthropic", requests: 0, usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } };
  return providers.find(({ provider }) => provider === "anthropic") ?? unused;
}

interface Counted {
  readonly provider: string;
  readonly requests: number;
  readonly usage: Readonly<Record<"input" | "output" | "cacheRead" | "cacheWrite", number>>;
}

/** Until the first bytes of a response are there; the rest of it is not counted. */
function firstToken(between: Between): Subject {
  let rest: Promise<void> | undefined;
  return {
    async run() {
      const { first, whole } = ask(between, "short");
      rest = whole;
      await first;
    },
    clean: () => rest ?? Promise.resolve(),
  };
}

const agent = new Agent({ keepAlive: true });
/** As long as an agent's request is with its instructions and tools. */
const instructions = "You work on a program. ".repeat(1500);

/** `first` is there with the first bytes of a response, `whole` with its last ones, if none is missing. */
function ask({ socketPath, headers }: Between, kind: Kind): { first: Promise<void>; whole: Promise<void> } {
  const body = {
    model: "build",
    max_tokens: 32_000,
    stream: true,
    system: [{ type: "text", text: instructions }],
    messages: [{ role: "user", content: "Go on." }],
    metadata: { user_id: kind },
  };
  const [first, whole] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const fail = (error: Error) => {
    first.reject(error);
    whole.reject(error);
  };
  const sent = request({ socketPath, agent, method: "POST", path: "/v1/messages", headers }, (response) => {
    let last: Buffer = Buffer.alloc(0);
    response.on("data", (chunk: Buffer) => {
      first.resolve();
      last = chunk.length < ending.length ? Buffer.concat([last, chunk]) : chunk;
    });
    response.on("error", fail);
    response.on("end", () => {
      if (response.statusCode === 200 && last.toString().endsWith(ending)) whole.resolve();
      else fail(new Error(`status ${response.statusCode}, and the end is ${last.toString().slice(-200)}`));
    });
  });
  sent.on("error", fail);
  sent.end(JSON.stringify(body));
  return { first: first.promise, whole: whole.promise };
}

const ending = '{"type":"message_stop"}\n\n';

async function getJson<T>(sent: ReturnType<typeof request>): Promise<T> {
  sent.end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  return (await json(response)) as T;
}
