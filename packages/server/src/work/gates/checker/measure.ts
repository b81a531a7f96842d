import { setTimeout as delay } from "node:timers/promises";
import type { PerformanceMetric } from "@slipway/contract";
import type { Browser, Page } from "playwright-core";
import type { CheckerAnswer } from "../checks/answers.ts";
import type { BrowserJob, Target } from "../checks/browser-job.ts";
import { leave, snapshotOf, viewports } from "./browse.ts";
import { find } from "./find.ts";
import { watchLoading } from "./settle.ts";

type MeasureJob = Extract<BrowserJob, { readonly type: "measure" }>;

const openMs = 60_000;
const settleMs = 3_000;
/** Time for the browser to report its performance entries. */
const tellMs = 500;
/** Time for the first paint: a busy machine paints later than it loads. */
const paintMs = 5_000;
const lookMs = 100;
const interactMs = 10_000;

/** Values that vary between visits are measured several times. Values known with the response need no delay. */
const ways: Readonly<Record<PerformanceMetric, { readonly times: number; readonly tellMs: number }>> = {
  firstByteMs: { times: 3, tellMs: 0 },
  largestPaintMs: { times: 3, tellMs },
  interactionMs: { times: 3, tellMs },
  transferKilobytes: { times: 1, tellMs: 0 },
  layoutShift: { times: 3, tellMs },
};

/** Runs before the page's own scripts, so they cannot tamper with it. */
const observe = `(() => {
  const seen = { paint: null, shift: 0, interaction: 0 };
  const on = (type, take, more = {}) =>
    new PerformanceObserver((list) => list.getEntries().forEach(take)).observe({ type, buffered: true, ...more });
  on("largest-contentful-paint", (entry) => { seen.paint = entry.startTime; });
  on("layout-shift", (entry) => { if (!entry.hadRecentInput) seen.shift += entry.value; });
  const interaction = (entry) => { if (entry.interactionId > 0) seen.interaction = Math.max(seen.interaction, entry.duration); };
  on("event", interaction, { durationThreshold: 16 });
  const entries = performance.getEntriesByType.bind(performance);
  const tell = () => ({ ...seen, firstByte: entries("navigation")[0]?.responseStart ?? null });
  Object.defineProperty(window, "slipwaySeen", { value: tell });
})()`;

interface Seen {
  readonly paint: number | null;
  readonly shift: number;
  readonly interaction: number;
  readonly firstByte: number | null;
}

/** Visits once to warm the app up, then once per measurement, each time as a new visitor. */
export async function measure(browser: Browser, job: MeasureJob, origin: string): Promise<CheckerAnswer> {
  const values: (number | null)[] = [];
  for (let time = 0; time <= ways[job.metric].times; time++) {
    const context = await browser.newContext({ ...viewports.desktop, baseURL: origin });
    const page = await context.newPage();
    const value = await once(page, job, time === 0 ? job.sees : null);
    if (value === "unopened" || value === "missing") {
      const seen = value === "missing" ? await snapshotOf(page) : "";
      leave(page);
      return { type: "failed", step: 0, why: value, detail: "", page: seen, errors: [] };
    }
    if (time > 0) values.push(value);
    await context.close();
  }
  return { type: "measured", values };
}

async function once(
  page: Page,
  { path, metric, patienceMs }: MeasureJob,
  sees: Target | null,
): Promise<number | null | "unopened" | "missing"> {
  await page.addInitScript(observe);
  const [bytes, loaded] = [await countBytes(page), watchLoading(page)];
  const response = await page.goto(path, { timeout: openMs }).catch(() => null);
  if (response === null) return "unopened";
  await loaded(settleMs);
  // Before anything that a page without it has nothing for.
  if (sees !== null && (await find(page, sees, { patienceMs })) === undefined) return "missing";
  if (metric === "interactionMs") await interact(page);
  if (metric === "largestPaintMs") await painted(page);
  await delay(ways[metric].tellMs);
  return figure(metric, await seenBy(page), bytes());
}

const seenBy = (page: Page) => page.evaluate<Seen>("window.slipwaySeen()");

async function painted(page: Page): Promise<void> {
  for (const endsAt = Date.now() + paintMs; Date.now() < endsAt; await delay(lookMs)) {
    if ((await seenBy(page)).paint !== null) return;
  }
}

function figure(metric: PerformanceMetric, seen: Seen, bytes: number): number | null {
  switch (metric) {
    case "firstByteMs":
      return seen.firstByte;
    case "largestPaintMs":
      return seen.paint;
    case "interactionMs":
      // The browser does not report shorter ones.
      return Math.max(seen.interaction, 16);
    case "transferKilobytes":
      return bytes / 1000;
    case "layoutShift":
      return seen.shift;
  }
}

/** Counts bytes on the wire, independent of the page. */
async function countBytes(page: Page): Promise<() => number> {
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  let bytes = 0;
  session.on("Network.loadingFinished", ({ encodedDataLength }) => {
    bytes += encodedDataLength;
  });
  return () => bytes;
}

/** Uses the first control that a person could: types into a text box, or else clicks. */
async function interact(page: Page): Promise<void> {
  const box = page.getByRole("textbox").filter({ visible: true }).first();
  const control = page.locator("button, [role=button], a[href]").filter({ visible: true }).first();
  const options = { timeout: interactMs };
  if (await box.isVisible()) await box.pressSequentially("a", options);
  else if (await control.isVisible()) await control.click(options);
  else await page.locator("body").click(options);
}
