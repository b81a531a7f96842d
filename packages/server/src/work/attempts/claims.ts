import type { AttemptSurroundings } from "./surroundings.ts";

type Claiming = Pick<AttemptSurroundings, "bridge" | "build" | "warn">;

/** So long a file stays claimed whose attempt is not heard of any more. */
export const claimMs = 30 * 60_000;
const renewMs = claimMs / 3;

/** What an attempt has claimed stays its own for as long as it works, whoever has heard the claims. */
export function keepClaims(world: Claiming, owner: string, signal: AbortSignal): void {
  const renew = async () => {
    for (const { path, token } of await claimsOf(world, owner)) {
      await world.bridge.renew(world.build.id, { path, token, leaseMs: claimMs });
    }
  };
  const timer = setInterval(() => {
    renew().catch((error: Error) => world.warn(`${world.build.id}, claims of ${owner}: ${error.message}`));
  }, renewMs);
  timer.unref();
  signal.addEventListener("abort", () => clearInterval(timer), { once: true });
}

export async function freeClaims(world: Claiming, owner: string): Promise<void> {
  for (const { path, token } of await claimsOf(world, owner))
    await world.bridge.release(world.build.id, { path, token });
}

async function claimsOf({ bridge, build }: Claiming, owner: string) {
  return (await bridge.claims(build.id)).filter((claim) => claim.owner === owner);
}
