import { bridgeLimits, type Claim, claimRequestSchema, compareIds, SlipwayError } from "@slipway/contract";
import type { Claims } from "@slipway/engine";
import { z } from "zod";
import { parseInput, releaseSchema, renewSchema } from "../input.ts";
import { asked, type RedisConnection } from "./connection.ts";

const storedClaimSchema = z.object({ path: z.string(), owner: z.string(), token: z.int(), expiresAt: z.int() });

export function createRedisClaims({ client, key }: RedisConnection, now: () => number): Claims {
  return {
    async claim(build, request) {
      const { paths, owner, leaseMs } = parseInput(claimRequestSchema, request);
      const wanted = [...new Set(paths)];
      const nowMs = now();
      const [answer, ...claims] = await asked(
        client.claimPaths(
          [key(build, "claims")],
          [owner, nowMs, nowMs + leaseMs, bridgeLimits.maxClaimedPaths, ...wanted],
        ),
      );
      if (answer === "granted") return { granted: true, claims: byPath(claims.map(toClaim)) };
      if (answer === "held") return { granted: false, held: byPath(claims.map(toClaim)) };
      const message = `${build} would have claimed more than ${bridgeLimits.maxClaimedPaths} paths`;
      throw new SlipwayError("too_large", message);
    },
    async renew(build, held) {
      const { path, token, leaseMs } = parseInput(renewSchema, held);
      const nowMs = now();
      const moved = await asked(client.moveLease([key(build, "claims")], [path, token, nowMs, nowMs + leaseMs]));
      return moved === null ? undefined : toClaim(moved);
    },
    async release(build, held) {
      const { path, token } = parseInput(releaseSchema, held);
      return (await asked(client.moveLease([key(build, "claims")], [path, token, now(), 0]))) !== null;
    },
    async claims(build) {
      const stored = await asked(client.hVals(key(build, "claims")));
      return byPath(stored.map(toClaim).filter(({ expiresAt }) => expiresAt > now()));
    },
  };
}

function toClaim(text: string): Claim {
  return storedClaimSchema.parse(JSON.parse(text));
}

function byPath(claims: readonly Claim[]): readonly Claim[] {
  return claims.toSorted((a, b) => compareIds(a.path, b.path));
}
