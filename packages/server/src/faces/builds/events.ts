import { type BuildId, type EventView, SlipwayError, type StreamEnd } from "@slipway/contract";
import { type BuildRecord, hasEnded, type Store } from "@slipway/engine";
import type { BuildMethods } from "./face.ts";
import type { News } from "./news.ts";
import { eventViewOf } from "./views.ts";

const eventsAtOnce = 500;

/** `pollMs`: how often those who wait look for what other processes have done. */
export function createBuildEvents(store: Store, news: News, pollMs: number): Pick<BuildMethods, "events" | "follow"> {
  return {
    async events(build, { after, limit }) {
      const record = await store.builds.get(build);
      requireWithin(record, after);
      const events = await store.events.read(build, after, { limit });
      const next = events.at(-1)?.sequence ?? after;
      return { events: events.map(eventViewOf), next, ended: hasEnded(record) && next >= record.lastEvent };
    },

    async follow(build, { after }, signal) {
      requireWithin(await store.builds.get(build), after);
      return eventsOf(build, after, signal);
    },
  };

  async function* eventsOf(
    build: BuildId,
    after: number,
    signal: AbortSignal,
  ): AsyncGenerator<EventView, StreamEnd | undefined> {
    using listening = news.listen(build);
    let last = after;
    while (!signal.aborted) {
      // Read first: what an ended build has told by then is all that is waited for.
      const record = await store.builds.get(build);
      const events = await store.events.read(build, last, { limit: eventsAtOnce });
      for (const event of events) yield eventViewOf(event);
      last = events.at(-1)?.sequence ?? last;
      if (events.length === eventsAtOnce) continue;
      if (hasEnded(record) && last >= record.lastEvent) return { status: record.status, reason: record.reason };
      await listening.next(pollMs, signal);
    }
    return undefined;
  }
}

function requireWithin({ id, lastEvent }: BuildRecord, after: number): void {
  if (after <= lastEvent) return;
  throw new SlipwayError("invalid_request", `the events of ${id} end at ${lastEvent}, before ${after}`);
}
