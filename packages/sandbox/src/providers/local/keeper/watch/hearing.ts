import { hasCode } from "@slipway/contract";
import type { Lifecycle } from "../../../../keeper/boxes/lifecycle.ts";
import { type Clock, repeat } from "../../../../keeper/clock.ts";
import type { AgentLink } from "../boxes/agent-link.ts";
import type { Box, Boxes } from "../boxes/boxes.ts";

const intervalMs = 10_000;
/** One failure says little: with a full queue of connections, a question fails at once. */
const patienceMs = 30_000;

export interface HearingParts {
  readonly boxes: Pick<Boxes, "all">;
  readonly agent: Pick<AgentLink, "use">;
  readonly lifecycle: Pick<Lifecycle, "end">;
  readonly clock: Clock;
  onError(box: Box, error: unknown): void;
}

/**
 * Ends running sandboxes whose pid 1 stops answering. Callers wait for pid 1 without a limit of their own: the end
 * tells them, and the sandbox's commands end as `lost`.
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
      // Asked again in its turn: a snapshot may have held it, or it fell asleep.
      if (clock.now() - since >= patienceMs) await lifecycle.end(box.id, "provider_lost", () => isDeaf(box));
    } catch (error) {
      // Destroyed meanwhile.
      if (!hasCode(error, "sandbox_not_found")) onError(box, error);
    } finally {
      asked.delete(box);
    }
  };
  return repeat(
    clock,
    () => intervalMs,
    async () => {
      for (const box of boxes.all()) if (!asked.has(box)) void listen(box);
    },
  );
}
