import { createHmac, timingSafeEqual } from "node:crypto";
import { type RunId, SlipwayError } from "@slipway/contract";

/** Makes and checks the tokens of runs. They follow from the secret, so that a restarted gateway knows them. */
export interface RunTokens {
  of(run: RunId): string;
  /** The run that a token names; fails with `run_token_invalid`. */
  verify(token: string): RunId;
  /** For the host's own questions, such as the health of providers. Never given to a sandbox. */
  readonly host: string;
  isHost(token: string): boolean;
}

const maxRemembered = 10_000;
const tokenPattern = /^slr_(run_[0-9a-z]{20})_[A-Za-z0-9_-]{43}$/;

export function createRunTokens(secret: string): RunTokens {
  if (secret.length < 16)
    throw new SlipwayError("invalid_settings", "the secret of run tokens has under 16 characters");
  const sign = (text: string) => createHmac("sha256", secret).update(text).digest("base64url");
  const made = new Map<RunId, string>();
  const of = (run: RunId) => {
    const known = made.get(run);
    if (known !== undefined) return known;
    const token = `slr_${run}_${sign(run)}`;
    // Anybody can name runs that are not there.
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
      throw new SlipwayError("run_token_invalid", "the run token is not one of this gateway");
    },
  };
}

/** In a time that does not tell how much of it is right. */
function isSame(given: string, right: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(right)];
  return a.length === b.length && timingSafeEqual(a, b);
}
