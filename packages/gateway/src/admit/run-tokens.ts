import { createHmac, timingSafeEqual } from "node:crypto";
import { type RunId, SlipwayError } from "@slipway/contract";

/** Makes and verifies run tokens. They derive from the secret, so a restarted gateway still accepts them. */
export interface RunTokens {
  of(run: RunId): string;
  /** Returns the run of a token. Fails with `run_token_invalid`. */
  verify(token: string): RunId;
  /** Token for the host's own requests, such as provider health. Never given to a sandbox. */
  readonly host: string;
  isHost(token: string): boolean;
}

const maxRemembered = 10_000;
const tokenPattern = /^slr_(run_[0-9a-z]{20})_[A-Za-z0-9_-]{43}$/;

export function createRunTokens(secret: string): RunTokens {
  if (secret.length < 16)
    throw new SlipwayError("invalid_settings", "The secret for run tokens needs at least 16 characters.");
  const sign = (text: string) => createHmac("sha256", secret).update(text).digest("base64url");
  const made = new Map<RunId, string>();
  const of = (run: RunId) => {
    const known = made.get(run);
    if (known !== undefined) return known;
    const token = `slr_${run}_${sign(run)}`;
    // Any client can name runs that do not exist.
    if (made.size >= maxRemembered) made.clear();
    made.set(run, token);
    return token;
  };
  const host = `slh_${sign("host")}`;
  return {
    of,
    host,
    isHost: (token) => isSame(token, host),
    verify(token) {
      const run = tokenPattern.exec(token)?.[1] as RunId | undefined;
      if (run !== undefined && isSame(token, of(run))) return run;
      throw new SlipwayError("run_token_invalid", "this gateway did not issue the run token");
    },
  };
}

/** Compares in constant time. */
function isSame(given: string, right: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(right)];
  return a.length === b.length && timingSafeEqual(a, b);
}
