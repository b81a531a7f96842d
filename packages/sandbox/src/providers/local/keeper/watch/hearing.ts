import { hasCode } from "@slipway/contract";
import type { AgentLink } from "../boxes/agent-link.ts";
import type { Box, Boxes } from "../boxes/boxes.ts";
import type { Lifecycle } from "../boxes/lifecycle.ts";
import type { Clock } from "../clock.ts";

const intervalMs = 10_000;
/** Where more want to connect than fit, a question fails at once: one such failure says little. */
const patienceMs = 30_000;

export interface HearingParts {
  readonly boxes: Pick<Boxes, "all">;
  readonly agent: Pick<AgentLink, "use">;
  readonly lifecycle: Pick<Lifecycle, "end">;
  readonly clock: Clock;
  onError(box: Box, error: unknown): void;
}

/**
 * Asks every running sandbox whether its pid 1 still answers, and ends one that does not. Callers wait for the answers of pid 1
 * without a limit of their own: its end is what they hear of, and its commands end as `lost`.
 */
export function startHearing(parts: HearingParts): Disposable {
  const { boxes, agent, lifecycle, clock, onError } = parts;
  const asked = new WeakSet<Box>();
  const silentSince = new WeakMap<Box, number>();
  const isDeaf = async (box: Box) => {
    if (box.record.state !== "running") return false;
    return agent.use(box).then(
      () => false,
      () => true,
    );
  };
  const listen = async (box: Box) => {
    asked.add(box);
    const since = silentSince.get(box) ?? clock.now();
    try {
      if (!(await isDeaf(box))) return void silentSince.delete(box);
      silentSince.set(box, since);
      // Asked again in its turn: a snapshot may have kept it from answering, or it has fallen asleep.
      if (clock.now() - since >= patienceMs) await lifecycle.end(box.id, "provider_lost", () => isDeaf(box));
    } catch (error) {
      // Destroyed meanwhile: that is why it did not answer.
      if (!hasCode(error, "sandbox_not_found")) onError(box, error);
    } finally {
      asked.delete(box);
    }
  };
  let cancel = () => {};
  const again = () => {
    cancel = clock.after(intervalMs, () => {
      for (const box of boxes.all()) if (!asked.has(box)) void listen(box);
      again();
    });
  };
  again();
  return { [Symbol.dispose]: () => cancel() };
}
