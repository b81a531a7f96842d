import type { RunnerEvent } from "@slipway/contract";

/** Joins the small pieces in which models write, so that a run needs fewer events. */
export interface Coalescer {
  readonly isHolding: boolean;
  /** Returns what is due now, in order. Holds text until its agent does something else, or `flush`. */
  push(event: RunnerEvent): readonly RunnerEvent[];
  flush(): readonly RunnerEvent[];
}

interface HeldText {
  readonly agent: string;
  readonly channel: "answer" | "thinking";
  readonly text: string;
}

const maxJoinedCharacters = 16 * 1024;

export function createCoalescer(): Coalescer {
  const held = new Map<string, HeldText>();
  const release = (agent: string): RunnerEvent[] => {
    const text = held.get(agent);
    held.delete(agent);
    return text === undefined ? [] : [toEvent(text)];
  };
  const flush = () => [...held.keys()].flatMap(release);
  return {
    get isHolding() {
      return held.size > 0;
    },
    push(event) {
      if (event.type !== "agent") return [...flush(), event];
      if (event.event.type !== "text") return [...release(event.agent), event];
      const { agent } = event;
      const { channel, text } = event.event;
      const before = held.get(agent);
      const joined = (before?.text ?? "") + text;
      const joins = before?.channel === channel && joined.length <= maxJoinedCharacters;
      const due = joins ? [] : release(agent);
      held.set(agent, { agent, channel, text: joins ? joined : text });
      return due;
    },
    flush,
  };
}

function toEvent({ agent, channel, text }: HeldText): RunnerEvent {
  return { type: "agent", agent, event: { type: "text", channel, text } };
}
