import { SlipwayError } from "@slipway/contract";

export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new SlipwayError("aborted", "the caller gave up", { cause: signal.reason });
}
