import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { newModalId } from "./ids.ts";

/** What a client proves who it is with. Made at random for each stand-in. */
export interface Tokens {
  readonly id: string;
  readonly secret: string;
  accepts(id: string | undefined, secret: string | undefined): boolean;
  /** A signed token that ends after its lifetime, for one task or for a session. */
  sign(claims: Claims, lifetimeSeconds?: number): string;
  /** Null when the token is not ours, has expired, or has been revoked. */
  verify(token: string | undefined): Claims | null;
  /** Refuses every token signed so far. */
  revoke(): void;
  /** How long the tokens live that are signed from now on; null: an hour. */
  setLifetime(seconds: number | null): void;
}

export interface Claims {
  readonly task?: string;
  readonly sandbox?: string;
  readonly port?: number;
  readonly user?: string;
}

const usualLifetimeSeconds = 3600;

export function createTokens(): Tokens {
  const id = newModalId("ak");
  const secret = newModalId("as");
  const key = randomBytes(32);
  let series = 0;
  let lifetime: number | null = null;
  const signature = (text: string) => createHmac("sha256", key).update(text).digest("base64url");
  return {
    id,
    secret,
    accepts: (givenId = "", givenSecret = "") => isSame(givenId, id) && isSame(givenSecret, secret),
    sign(claims, lifetimeSeconds = lifetime ?? usualLifetimeSeconds) {
      // By the machine's own clock, because the client compares it with that.
      const exp = Math.floor(Date.now() / 1000) + lifetimeSeconds;
      const text = `${encode({ alg: "HS256", typ: "JWT" })}.${encode({ ...claims, exp, series })}`;
      return `${text}.${signature(text)}`;
    },
    verify(token = "") {
      const [header = "", body = "", given = ""] = token.split(".");
      if (!isSame(given, signature(`${header}.${body}`))) return null;
      const claims = JSON.parse(Buffer.from(body, "base64url").toString());
      return claims.exp * 1000 > Date.now() && claims.series === series ? claims : null;
    },
    revoke() {
      series += 1;
    },
    setLifetime(seconds) {
      lifetime = seconds;
    },
  };
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

function isSame(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}
