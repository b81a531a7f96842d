import { SlipwayError } from "@slipway/contract";
import { type BuildRecord, hasEnded, type Store } from "@slipway/engine";
import type { BuildFace } from "./face.ts";
import type { News } from "./news.ts";
import { eventViewOf } from "./views.ts";

const eventsAtOnce = 500;

/** `pollMs`: how often those who wait look for what other processes have done. */
export function createBuildEvents(store: Store, news: News, pollMs: number): Pick<BuildFace, "events" | "follow"> {
  return {
    async events(build, after, limit) {
      const record = await store.builds.get(build);
      requireWithin(record, after);
      const events = await store.events.read(build, after, { limit });
      const next = events.at(-1)?.sequence ?? after;
      return { events: events.map(eventViewOf), next, ended: hasEnded(record) && next >= record.lastEvent };
    },

    async *follow(build, after, signal) {
      using listening = news.listen(build);
      requireWithin(await store.builds.get(build), after);
      let last = after;
      while (!signal.aborted) {
        // Read first: what an ended build has told by then is all that is waited for.
        const record = await store.builds.get(build);
        const events = await store.events.read(build, last, { limit: eventsAtOnce });
        for (const event of events) yield eventViewOf(event);
        last = events.at(-1)?.sequence ?? last;
        if (events.length === eventsAtOnce) continue;
        if (hasEnded(record) && last >= record.lastEvent) return;
        await listening.next(pollMs, signal);
      }
    },
  };
}

function requireWithin({ id, lastEvent }: BuildRecord, after: number): void {
  if (after <= lastEvent) return;
  throw new SlipwayError("invalid_request", `the events of ${id} end at ${lastEvent}, before ${after}`);
}
