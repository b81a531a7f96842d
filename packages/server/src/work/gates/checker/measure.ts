import { setTimeout as delay } from "node:timers/promises";
import type { Check } from "@slipway/contract";
import type { Browser, Page } from "playwright-core";
import type { CheckerAnswer } from "../answers.ts";
import { viewports } from "./browse.ts";
import { watchLoading } from "./settle.ts";

type PerformanceCheck = Extract<Check, { readonly type: "performance" }>;
type Metric = PerformanceCheck["metric"];

const openMs = 60_000;
const settleMs = 3_000;
/** Until the browser has told what it has seen. */
const tellMs = 500;
/** Until there is something to be seen: a browser that is let wait shows it later than it has loaded it. */
const paintMs = 5_000;
const lookMs = 100;
const interactMs = 10_000;

/** What differs from visit to visit is measured often. What is there with the answer is not waited for. */
const ways: Readonly<Record<Metric, { readonly times: number; readonly tellMs: number }>> = {
  firstByteMs: { times: 3, tellMs: 0 },
  largestPaintMs: { times: 3, tellMs },
  interactionMs: { times: 3, tellMs },
  transferKilobytes: { times: 1, tellMs: 0 },
  layoutShift: { times: 3, tellMs },
};

/** What a page's own programs can not undo: it is there before them. */
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

/** Once to warm the app up, then as often as is measured, each time as a new visitor. */
export async function measure(browser: Browser, check: PerformanceCheck, origin: string): Promise<CheckerAnswer> {
  const values: (number | null)[] = [];
  for (let time = 0; time <= ways[check.metric].times; time++) {
    const context = await browser.newContext({ ...viewports.desktop, baseURL: origin });
    const page = await context.newPage();
    const value = await once(page, check);
    if (value === "unopened") {
      return { type: "failed", step: 0, why: "unopened", detail: "", page: "", errors: [] };
    }
    if (time > 0) values.push(value);
    await context.close();
  }
  return { type: "measured", values };
}

async function once(page: Page, { path, metric }: PerformanceCheck): Promise<number | null | "unopened"> {
  await page.addInitScript(observe);
  const [bytes, loaded] = [await countBytes(page), watchLoading(page)];
  const response = await page.goto(path, { timeout: openMs }).catch(() => null);
  if (response === null) return "unopened";
  await loaded(settleMs);
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

function figure(metric: Metric, seen: Seen, bytes: number): number | null {
  switch (metric) {
    case "firstByteMs":
      return seen.firstByte;
    case "largestPaintMs":
      return seen.paint;
    case "interactionMs":
      // Quicker ones are not told by the browser.
      return Math.max(seen.interaction, 16);
    case "transferKilobytes":
      return bytes / 1000;
    case "layoutShift":
      return seen.shift;
  }
}

/** As they came over the wire, whatever the page says of it. */
async function countBytes(page: Page): Promise<() => number> {
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  let bytes = 0;
  session.on("Network.loadingFinished", ({ encodedDataLength }) => {
    bytes += encodedDataLength;
  });
  return () => bytes;
}

/** With the first thing that a person can use: a box to type into, else something to click on. */
async function interact(page: Page): Promise<void> {
  const box = page.getByRole("textbox").filter({ visible: true }).first();
  const control = page.locator("button, [role=button], a[href]").filter({ visible: true }).first();
  const options = { timeout: interactMs };
  if (await box.isVisible()) await box.pressSequentially("a", options);
  else if (await control.isVisible()) await control.click(options);
  else await page.locator("body").click(options);
}
