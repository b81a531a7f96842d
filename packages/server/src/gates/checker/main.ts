/**
 * The program inside a checker sandbox: `main.ts <socket> <port>`. It lets a browser reach the app through the socket, does
 * what the checks say that come as lines on standard input, and answers each with a line. No candidate's program is near it.
 */
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import type { Check } from "@slipway/contract";
import type * as Playwright from "playwright-core";
import type { Browser } from "playwright-core";
import type { CheckerAnswer } from "../answers.ts";
import { browse } from "./browse.ts";
import { measure } from "./measure.ts";
import { startRelay } from "./relay.ts";

const { chromium }: typeof Playwright = createRequire(import.meta.url)("/opt/playwright-core");
const [socket = "", port = ""] = process.argv.slice(2);
const origin = `http://localhost:${port}`;
const checkMs = 120_000;
type AnyCheck = Exclude<Check, { readonly type: "http" }>;
const maxAnswerCharacters = 20_000;

/** A sandbox around the browser's parts needs namespaces, which the sandbox around all of it does not give out. */
const chromiumArguments = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--disable-dev-shm-usage",
  "--no-first-run",
  "--no-proxy-server",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--host-resolver-rules=MAP localhost 127.0.0.1",
];

let browser: Promise<Browser> | undefined;

async function answerTo(check: AnyCheck): Promise<CheckerAnswer> {
  browser ??= chromium.launch({ executablePath: "/usr/bin/chromium", args: chromiumArguments });
  const opened = await browser;
  const deadline = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => deadline.resolve(undefined), checkMs);
  const work = check.type === "performance" ? measure(opened, check, origin) : browse(opened, check, origin);
  // After the deadline nobody waits for it any more.
  work.catch(() => {});
  try {
    const answer = await Promise.race([work, deadline.promise]);
    if (answer !== undefined) return answer;
    browser = undefined;
    void opened.close();
    return { type: "failed", step: 0, why: "stuck", detail: "", page: "", errors: [] };
  } finally {
    clearTimeout(timer);
  }
}

function held(text: string): string {
  return text.length > maxAnswerCharacters ? text.slice(0, maxAnswerCharacters).toWellFormed() : text;
}

await startRelay(socket, Number(port));
for await (const line of createInterface({ input: process.stdin })) {
  const answer = await answerTo(JSON.parse(line) as AnyCheck).catch(
    (error: Error): CheckerAnswer => ({ type: "broken", detail: held(String(error.stack)) }),
  );
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
process.exit();
