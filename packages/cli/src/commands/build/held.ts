import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "@slipway/client";
import type { BuildId } from "@slipway/contract";

const pollMs = 50;

/** A draft is told of before the build waits for its user. False: it does not wait for one. */
export async function untilHeld(client: Client, id: BuildId, signal: AbortSignal): Promise<boolean> {
  for (;;) {
    const { planning, endedAt } = await client.builds.get(id, { signal });
    if (planning?.step === "held") return true;
    if (planning?.stage !== "draft" || endedAt !== null) return false;
    await delay(pollMs, undefined, { signal });
  }
}
