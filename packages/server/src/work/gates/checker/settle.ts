import { setTimeout as delay } from "node:timers/promises";
import type { Page, Request } from "playwright-core";

/** A page without requests for this long has loaded. */
const quietMs = 300;
const lookMs = 50;

/**
 * Returns a function that waits until the page has loaded, up to the given time. Event streams do not count: a page with one
 * would never be ready. Call it before the page opens anything.
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
      // Scripts that run only now may start more requests.
      if (pending.size === 0 && Date.now() - Math.max(quietSince, asked) >= quietMs) return;
    }
  };
}
