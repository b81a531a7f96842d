import type { AttemptSurroundings } from "./surroundings.ts";

type Claiming = Pick<AttemptSurroundings, "bridge" | "build" | "warn">;

/** How long files stay claimed after their attempt falls silent. */
export const claimMs = 30 * 60_000;
const renewMs = claimMs / 3;

/** Renews a working attempt's claims, even those taken through another process. */
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
