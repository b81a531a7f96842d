import { setTimeout as delay } from "node:timers/promises";
import type { Browser, Page } from "playwright-core";
import type { CheckerAnswer } from "../checks/answers.ts";
import type { BrowserJob } from "../checks/browser-job.ts";
import { leave, messageOf, viewports } from "./browse.ts";
import { watchLoading } from "./settle.ts";

type LookJob = Extract<BrowserJob, { readonly type: "look" }>;

const openMs = 10_000;
const settleMs = 3_000;
const readMs = 5_000;
/** For all of a page. */
const pageMs = 20_000;
const maxShownCharacters = 3000;
const maxLinksPerPage = 300;
const maxKnown = 1000;
const maxAddressCharacters = 300;

/** Opens each path once, the nearest first, and those that differ only in a number last. */
export async function look(browser: Browser, { most, forMs }: LookJob, origin: string): Promise<CheckerAnswer> {
  const endsAt = Date.now() + forMs;
  const answer = { type: "looked" as const, pages: [] as Shown[], unread: [] as string[], hasMore: false };
  const waiting = ["/"];
  const known = new Set(waiting);
  const kinds = new Set<string>();
  for (let visits = 0; visits < most && waiting.length > 0; visits++) {
    const leftMs = endsAt - Date.now();
    if (leftMs <= 0) break;
    const path = takeNext(waiting, kinds);
    const seen = await see(browser, path, origin, Math.min(pageMs, leftMs));
    if ("failure" in seen) {
      if (visits === 0) return { type: "failed", step: 0, why: "unopened", detail: seen.failure, page: "", errors: [] };
      answer.unread.push(path);
      continue;
    }
    const { at, shows, links } = seen;
    const isThere = pathOf(at) === pathOf(path);
    // What it leads to may have been seen, or will be.
    if (isThere || !known.has(pathOf(at))) answer.pages.push({ path, leadsTo: isThere ? null : at, shows });
    known.add(pathOf(at));
    for (const link of links) {
      const address = addressOf(link, origin);
      if (address === undefined || known.has(pathOf(address)) || known.size >= maxKnown) continue;
      known.add(pathOf(address));
      waiting.push(address);
    }
  }
  return { ...answer, hasMore: waiting.length > 0 };
}

type Shown = Extract<CheckerAnswer, { readonly type: "looked" }>["pages"][number];

function takeNext(waiting: string[], kinds: Set<string>): string {
  const kindOf = (address: string) => pathOf(address).replace(/[^/]*\d[^/]*/g, "{}");
  const [next = "/"] = waiting.splice(
    Math.max(
      0,
      waiting.findIndex((address) => !kinds.has(kindOf(address))),
    ),
    1,
  );
  kinds.add(kindOf(next));
  return next;
}

interface SeenPage {
  readonly at: string;
  readonly shows: string;
  readonly links: readonly unknown[];
}

/** As a new visitor, so that a page that hangs holds up no other. */
async function see(
  browser: Browser,
  path: string,
  origin: string,
  mostMs: number,
): Promise<SeenPage | { readonly failure: string }> {
  let page: Page | undefined;
  const open = async () => {
    const context = await browser.newContext({ ...viewports.desktop, baseURL: origin, acceptDownloads: false });
    page = await context.newPage();
    return await read(page, path, origin);
  };
  try {
    return (await within(mostMs, open())) ?? { failure: "it cannot be read in time" };
  } catch (error) {
    return { failure: messageOf(error) };
  } finally {
    if (page !== undefined) leave(page);
  }
}

async function read(page: Page, path: string, origin: string): Promise<SeenPage | { readonly failure: string }> {
  const loaded = watchLoading(page);
  page.on("dialog", (dialog) => void dialog.dismiss().catch(() => {}));
  await page.goto(path, { timeout: openMs, waitUntil: "commit" });
  // A response without an end shows what there is of it.
  await page.waitForLoadState("domcontentloaded", { timeout: settleMs }).catch(() => {});
  await loaded(settleMs);
  const at = addressOf(page.url(), origin);
  if (at === undefined) return { failure: "it leads out of the app" };
  const shows = await page.locator("body").ariaSnapshot({ timeout: readMs });
  // No time limit of its own: a page that stays busy has no links.
  const links = (await within(readMs, linksOf(page))) ?? [];
  return { at, shows: shows.slice(0, maxShownCharacters).toWellFormed(), links };
}

async function linksOf(page: Page): Promise<unknown[]> {
  const links = await page
    .locator("a[href]:not([download])")
    .evaluateAll(
      (all, most) => all.slice(0, most).map((one: unknown) => (one as { href: unknown }).href),
      maxLinksPerPage,
    );
  return Array.isArray(links) ? links.slice(0, maxLinksPerPage) : [];
}

/** Path and query. Undefined: it is not the app's, or too long to be told. */
function addressOf(link: unknown, origin: string): string | undefined {
  const url = typeof link === "string" ? URL.parse(link) : null;
  if (url?.origin !== origin) return undefined;
  const address = url.pathname + url.search;
  return address.length <= maxAddressCharacters ? address : undefined;
}

function pathOf(address: string): string {
  return address.split("?", 1)[0] ?? "";
}

/** Undefined when that takes longer. */
async function within<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
  // Nobody awaits it after the deadline.
  work.catch(() => {});
  return await Promise.race([work, delay(ms, undefined, { ref: false })]);
}
