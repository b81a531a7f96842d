import type { AgentEvent } from "@slipway/contract";
import { shortText } from "../../system/text.ts";

const maxPlanEntries = 256;

export function planEvent(entries: Extract<AgentEvent, { type: "plan" }>["entries"]): AgentEvent {
  const shown = entries.slice(0, maxPlanEntries);
  return { type: "plan", entries: shown.map(({ text, status }) => ({ text: shortText(text), status })) };
}

/** Yields what `work` pushes, in order, and returns its result. */
export async function* eventsOf<T>(
  work: (push: (event: AgentEvent) => void) => Promise<T>,
): AsyncGenerator<AgentEvent, T, undefined> {
  const waiting: AgentEvent[] = [];
  let news = Promise.withResolvers<void>();
  let over = false;
  const answer = work((event) => {
    waiting.push(event);
    news.resolve();
  }).finally(() => {
    over = true;
    news.resolve();
  });
  // A reader that has left does not see the failure, which must not end the runner.
  answer.catch(() => {});
  while (!over || waiting.length > 0) {
    yield* waiting.splice(0);
    if (over) continue;
    await news.promise;
    news = Promise.withResolvers();
  }
  return await answer;
}
