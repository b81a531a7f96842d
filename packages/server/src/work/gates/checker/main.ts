/**
 * The program in a checker sandbox: `main.ts <socket> <port> <milliseconds per try>`. It drives a browser in another sandbox
 * through the socket. Checks come as lines on standard input; each is answered with a line. No candidate's program and no
 * page runs in this sandbox.
 */
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import type * as Playwright from "playwright-core";
import type { Browser } from "playwright-core";
import type { CheckerAnswer } from "../checks/answers.ts";
import type { BrowserJob } from "../checks/browser-job.ts";
import { browse, warmUp } from "./browse.ts";
import { look } from "./look.ts";
import { measure } from "./measure.ts";

// Beside the place that this program was called at: a tool directory may be a link.
const { chromium }: typeof Playwright = createRequire(process.argv[1] ?? import.meta.url)("../playwright-core");
const [socket = "", port = "", checkMs = ""] = process.argv.slice(2);
const origin = `http://localhost:${port}`;
const maxAnswerCharacters = 20_000;

/** Chromium's own sandbox needs namespaces, which the surrounding sandbox does not allow. */
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

const farBrowser = "/tmp/far-browser";
const farBrowserText = `#!/bin/sh\nexec ${process.execPath} ${import.meta.dirname}/far-browser/main.ts ${socket} "$@"\n`;
writeFileSync(farBrowser, farBrowserText, { mode: 0o755 });

const stuck: CheckerAnswer = { type: "failed", step: 0, why: "stuck", detail: "", page: "", errors: [] };
let browser = launch();
let isWarm = false;

/** Browsers sometimes hang or end by themselves: a page is to blame only if a second browser does so, too. */
async function answerTo(job: BrowserJob): Promise<CheckerAnswer> {
  return (await tryOut(job)) ?? (await tryOut(job)) ?? stuck;
}

/** Undefined at the deadline, and if the browser ended. */
async function tryOut(job: BrowserJob): Promise<CheckerAnswer | undefined> {
  const opened = await browser;
  const deadline = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => deadline.resolve(undefined), Number(checkMs));
  const work = make(job, opened);
  // Nobody awaits it after the deadline.
  work.catch(() => {});
  let answer: CheckerAnswer | undefined;
  try {
    answer = await Promise.race([work, deadline.promise]);
    // Without its browser every page fails.
    if (answer?.type === "failed" && !opened.isConnected()) answer = undefined;
    return answer;
  } finally {
    clearTimeout(timer);
    if (answer === undefined || !opened.isConnected()) {
      opened.close().catch(() => {});
      browser = launch();
    }
  }
}

/** The check that needs the browser reports a failed launch. */
function launch(): Promise<Browser> {
  const launched = chromium.launch({ executablePath: farBrowser, args: chromiumArguments });
  launched.catch(() => {});
  return launched;
}

async function make(job: BrowserJob, opened: Browser): Promise<CheckerAnswer> {
  const wasWarm = isWarm;
  isWarm = true;
  if (!wasWarm) await warmUp(opened, origin);
  switch (job.type) {
    case "visit":
      return await browse(opened, job, origin);
    case "measure":
      return await measure(opened, job, origin);
    case "look":
      return await look(opened, job, origin);
  }
}

function held(text: string): string {
  return text.length > maxAnswerCharacters ? text.slice(0, maxAnswerCharacters).toWellFormed() : text;
}

for await (const line of createInterface({ input: process.stdin })) {
  const answer = await answerTo(JSON.parse(line) as BrowserJob).catch(
    (error: Error): CheckerAnswer => ({ type: "broken", detail: held(String(error.stack)) }),
  );
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
process.exit();
