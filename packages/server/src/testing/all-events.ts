import type { BuildId } from "@slipway/contract";
import type { BuildEvent, Store } from "@slipway/engine";

export async function allEvents(store: Store, build: BuildId): Promise<readonly BuildEvent[]> {
  const events: BuildEvent[] = [];
  for (let page = await store.events.read(build, 0); page.length > 0; ) {
    events.push(...page);
    page = await store.events.read(build, events.at(-1)?.sequence ?? 0);
  }
  return events;
}
