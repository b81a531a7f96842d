import type { BuildId } from "@slipway/contract";
import { report } from "@slipway/engine";
import { planner } from "@slipway/gateway/scripted";
import { expect, test } from "vitest";
import { openWorld } from "../../testing/world.ts";
import { createBuildEvents } from "./events.ts";
import { announcing, createNews, type News } from "./news.ts";

const never = 2 ** 31 - 1;

test("who follows a build hears of an attempt's progress at once, with no turn of the build", async () => {
  await using site = await openWorld({ model: planner, planning: {} });
  const { news, waits } = watchedNews();
  const store = announcing(site.store, news);
  const { lastEvent } = await store.builds.get(site.build);
  const leaving = new AbortController();
  const { follow } = createBuildEvents(store, news, never);
  const heard = (await follow(site.build, { after: lastEvent, limit: 1 }, leaving.signal)).next();
  await waits;
  await store.events.report(site.build, [
    report("attempt.progress", null, { task: "list", attempt: 1, phase: "build", status: "begun" }),
  ]);
  expect(await heard).toMatchObject({ value: { type: "attempt.progress" } });
  leaving.abort();
});

/** `waits`: somebody waits for news. */
function watchedNews(): { readonly news: News; readonly waits: Promise<void> } {
  const { promise: waits, resolve } = Promise.withResolvers<void>();
  const { tell, listen } = createNews();
  const watched = (build: BuildId) => {
    const listening = listen(build);
    const next: typeof listening.next = (...limits) => {
      resolve();
      return listening.next(...limits);
    };
    return { next, [Symbol.dispose]: () => listening[Symbol.dispose]() };
  };
  return { news: { tell, listen: watched }, waits };
}
