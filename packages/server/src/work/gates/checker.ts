import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { Duplex } from "node:stream";
import { pipeline } from "node:stream/promises";
import { printable, SlipwayError } from "@slipway/contract";
import type { Exec, HostChannel, Sandbox, SandboxProvider } from "@slipway/sandbox";
import { type CheckerAnswer, checkerAnswerSchema } from "./checks/answers.ts";
import type { BrowserJob } from "./checks/browser-job.ts";
import { appOrigin, type Connect } from "./checks/exchange.ts";
import { evidenceTool } from "./evidence/collect.ts";

/**
 * A browser in its own sandbox, and in another one the program that drives it and judges what it shows. The browser can
 * only reach the app, and the program only the browser, both through the host.
 */
export interface Checker extends AsyncDisposable {
  /** Throws if the checker itself breaks: that says nothing about the app. */
  check(job: BrowserJob): Promise<CheckerAnswer>;
}

export interface CheckerParts {
  readonly provider: Pick<SandboxProvider, "create">;
  readonly labels: Readonly<Record<string, string>>;
  readonly connect: Connect;
  readonly signal: AbortSignal;
  /** A page that keeps a check busy for longer, in two browsers, fails it. */
  readonly checkMs?: number | undefined;
}

/** Host directories of the gates' tool directories, besides Node's. */
export function checkerToolDirectories(): Record<(typeof ownTools)[number] | typeof evidenceTool, string> {
  const require = createRequire(import.meta.url);
  return {
    [evidenceTool]: join(import.meta.dirname, "evidence/inside"),
    checker: join(import.meta.dirname, "checker"),
    "playwright-core": dirname(require.resolve("playwright-core/package.json")),
  };
}

const ownTools = ["checker", "playwright-core"] as const;
/** The port of the program in the browser's sandbox. */
const browserPort = 9222;
const maxAnswerCharacters = 1024 ** 2;
/** The program itself gives up on a page; after this much more time the program hangs. */
const graceMs = 120_000;
const usualCheckMs = 120_000;
const hourMs = 3_600_000;

export async function openChecker(given: CheckerParts): Promise<Checker> {
  const { provider, labels, connect, signal, checkMs = usualCheckMs } = given;
  await using parts = new AsyncDisposableStack();
  const create = async (tools: readonly string[], ports: number[]) =>
    parts.use(
      await provider.create(
        { tools: ["node", ...tools], labels, lifetimeMs: hourMs, idleMs: null, onEnd: "destroy", ports },
        { signal },
      ),
    );
  const browser = await create(["checker"], [browserPort]);
  const judge = await create(ownTools, []);
  const closing = new AbortController();
  parts.defer(() => closing.abort());
  let cut: unknown;
  const carryFrom = async (sandbox: Sandbox, to: Connect): Promise<string> => {
    const channel = parts.use(await sandbox.openChannel({ signal }));
    void carryAll(channel, to, AbortSignal.any([signal, closing.signal])).catch((error) => {
      cut = error;
    });
    return channel.inside;
  };
  const start = async (sandbox: Sandbox, name: string, ...args: readonly string[]) => {
    const { toolsDirectory } = sandbox;
    const argv = [`${toolsDirectory}/node/node`, `${toolsDirectory}/checker/${name}`, ...args];
    return parts.use(await sandbox.exec({ argv, stdin: "open", background: true, timeoutMs: null }, { signal }));
  };
  const toApp = await carryFrom(browser, connect);
  await untilReady(await start(browser, "browser/main.ts", toApp, appOrigin.port, String(browserPort)), signal);
  const toBrowser = await carryFrom(judge, (given) => browser.connect(browserPort, { signal: given }));
  const exec = await start(judge, "main.ts", toBrowser, appOrigin.port, String(checkMs));
  const answers = answersOf(exec, signal);
  const held = parts.move();
  return {
    async check(job) {
      await exec.write(`${JSON.stringify(job)}\n`, { signal });
      const answer = await nextOf(answers, 2 * checkMs + graceMs, signal);
      if (cut !== undefined) throw cut;
      if (answer.type === "broken") throw brokenError(answer.detail);
      return answer;
    },
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  };
}

async function untilReady(exec: Exec, signal: AbortSignal): Promise<void> {
  let complaint = "";
  for await (const chunk of exec.output({ signal })) {
    if (chunk.type === "stdout") return;
    if (chunk.type === "stderr") complaint = (complaint + Buffer.from(chunk.data).toString()).slice(-2000);
  }
  throw brokenError(`the program in the browser's sandbox ended: ${complaint}`);
}

/** Runs until the channel or the signal ends. */
async function carryAll(channel: HostChannel, connect: Connect, signal: AbortSignal): Promise<void> {
  try {
    for await (const browser of channel.connections({ signal })) void carry(browser, connect, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** A cut on one side cuts the other: the browser sees what a visitor would. */
async function carry(browser: Duplex, connect: Connect, signal: AbortSignal): Promise<void> {
  browser.on("error", () => {});
  try {
    const app = await connect(signal);
    await Promise.all([pipeline(browser, app, { signal }), pipeline(app, browser, { signal })]);
  } catch {
    browser.destroy();
  }
}

async function nextOf(
  answers: AsyncIterator<CheckerAnswer>,
  answerMs: number,
  signal: AbortSignal,
): Promise<CheckerAnswer> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(brokenError("it gave no answer")), answerMs);
  try {
    const next = await Promise.race([answers.next(), late.promise]);
    signal.throwIfAborted();
    if (next.done) throw brokenError("it ended");
    return next.value;
  } finally {
    clearTimeout(timer);
  }
}

async function* answersOf(exec: Exec, signal: AbortSignal): AsyncGenerator<CheckerAnswer> {
  const decoder = new TextDecoder();
  let complaint = "";
  let rest = "";
  for await (const chunk of exec.output({ signal })) {
    if (chunk.type === "output_truncated") throw brokenError("its output is too long");
    if (chunk.type === "stderr") complaint = (complaint + Buffer.from(chunk.data).toString()).slice(-2000);
    else rest += decoder.decode(chunk.data, { stream: true });
    if (rest.length > maxAnswerCharacters) throw brokenError("its output is too long");
    const lines = rest.split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) yield parseAnswer(line);
  }
  throw brokenError(`it ended: ${complaint}`);
}

function parseAnswer(line: string): CheckerAnswer {
  try {
    return checkerAnswerSchema.parse(JSON.parse(line));
  } catch (cause) {
    throw new SlipwayError("exec_failed", "cannot read the checker's answer", { cause });
  }
}

function brokenError(detail: string): SlipwayError {
  return new SlipwayError("exec_failed", `the checker is broken: ${printable(detail)}`);
}
