import type { AgentEvent, ClaimedEnd, RunLimits } from "@slipway/contract";
import { claimEnd } from "./end.ts";
import { createRepeatDetector } from "./repeats.ts";

export interface Supervision {
  readonly limits: RunLimits;
  /** Ends the turn as `cancelled`. */
  readonly signal: AbortSignal;
  /** While true, the agent waits for the user and is not stuck. */
  readonly waitsForUser?: () => boolean;
  /** How long a turn may take to end after its signal aborts. */
  readonly graceMs?: number;
}

/**
 * Enforces the limits on one turn of an agent, whatever its driver does. Ends with exactly one `ended`.
 * Abandons a turn that does not end within the grace.
 */
export async function* supervise(
  turn: (signal: AbortSignal) => AsyncIterable<AgentEvent>,
  supervision: Supervision,
): AsyncGenerator<AgentEvent, void, undefined> {
  const scope = new AbortController();
  const verdict = Promise.withResolvers<AgentEvent>();
  const end = (end: ClaimedEnd) => {
    verdict.resolve({ type: "ended", end });
    scope.abort();
  };
  using timers = watchTime(supervision, end);
  const brokenLimit = watchCalls(supervision.limits);
  const events = wellEnded(() => turn(scope.signal));
  let next = events.next();
  for (;;) {
    const event = await Promise.race([next.then(({ value }) => value), verdict.promise]);
    if (event === undefined || scope.signal.aborted) break;
    yield event;
    if (event.type === "ended") return;
    timers.restartIdle();
    const broken = brokenLimit(event);
    if (broken !== undefined) end(broken);
    next = events.next();
  }
  yield* drain(events, next, supervision.graceMs ?? 10_000);
  yield await verdict.promise;
}

/** Yields the turn's events up to its first end. A turn that throws or just stops gets an end, too. */
async function* wellEnded(start: () => AsyncIterable<AgentEvent>): AsyncGenerator<AgentEvent, undefined, undefined> {
  try {
    for await (const event of start()) {
      yield event;
      if (event.type === "ended") return;
    }
    yield { type: "ended", end: claimEnd("crashed", "the agent stopped without an answer") };
  } catch (error) {
    yield { type: "ended", end: claimEnd("internal", `the agent's driver failed: ${error}`) };
  }
}

/** Yields what a turn still reports while it ends, except its own end. */
async function* drain(
  events: AsyncGenerator<AgentEvent, undefined, undefined>,
  first: Promise<IteratorResult<AgentEvent, undefined>>,
  graceMs: number,
): AsyncGenerator<AgentEvent, void, undefined> {
  const grace = Promise.withResolvers<undefined>();
  const timer = setTimeout(grace.resolve, graceMs, undefined);
  try {
    for (let next = first; ; next = events.next()) {
      const event = await Promise.race([next.then(({ value }) => value), grace.promise]);
      if (event === undefined || event.type === "ended") return;
      yield event;
    }
  } finally {
    clearTimeout(timer);
  }
}

function watchTime({ limits, signal, waitsForUser }: Supervision, end: (claimed: ClaimedEnd) => void) {
  const cancel = () => end(claimEnd("cancelled"));
  const total = setTimeout(() => {
    end(claimEnd("timeout", `not done within ${limits.totalMs} ms`));
  }, limits.totalMs);
  const idle = setTimeout(() => {
    if (waitsForUser?.()) idle.refresh();
    else end(claimEnd("stuck", `nothing happened for ${limits.idleMs} ms`));
  }, limits.idleMs);
  signal.addEventListener("abort", cancel);
  if (signal.aborted) cancel();
  return {
    restartIdle: () => void idle.refresh(),
    [Symbol.dispose]() {
      clearTimeout(total);
      clearTimeout(idle);
      signal.removeEventListener("abort", cancel);
    },
  };
}

/** Returns the end that an event causes, if any. Parallel calls count as one step. */
function watchCalls({ maxSteps, maxRepeats }: RunLimits): (event: AgentEvent) => ClaimedEnd | undefined {
  const repeats = createRepeatDetector(maxRepeats);
  const running = new Map<string, string>();
  let steps = 0;
  return (event) => {
    if (event.type !== "tool") return undefined;
    if (event.phase === "start") {
      if (running.size === 0) steps++;
      running.set(event.id, event.input ?? "");
      return steps > maxSteps ? claimEnd("max_steps") : undefined;
    }
    const input = running.get(event.id) ?? "";
    running.delete(event.id);
    if (!repeats.isLooping({ name: event.name, input, output: event.output ?? "" })) return undefined;
    return claimEnd("looping", `the same calls of ${event.name} with the same results more than ${maxRepeats} times`);
  };
}
