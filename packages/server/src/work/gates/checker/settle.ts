import { setTimeout as delay } from "node:timers/promises";
import type { Page, Request } from "playwright-core";

/** Nothing is asked for during so long: the page has what it needs. */
const quietMs = 300;
const lookMs = 50;

/**
 * Waits until the page has loaded what it needs, within the time given. A stream of news that stays open is no part of that:
 * a page with one would never be ready. To be called before the page opens anything.
 */
export function watchLoading(page: Page): (mostMs: number) => Promise<void> {
  const pending = new Set<Request>();
  let quietSince = Date.now();
  const ended = (request: Request) => {
    if (pending.delete(request)) quietSince = Date.now();
  };
  page.on("request", (request) => {
    if (request.resourceType() !== "eventsource") pending.add(request);
  });
  page.on("requestfinished", ended);
  page.on("requestfailed", ended);
  return async (mostMs) => {
    const asked = Date.now();
    for (; Date.now() - asked < mostMs; await delay(lookMs)) {
      // What runs only now may ask for more.
      if (pending.size === 0 && Date.now() - Math.max(quietSince, asked) >= quietMs) return;
    }
  };
}
