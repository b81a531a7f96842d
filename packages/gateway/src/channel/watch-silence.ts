import { runChannel } from "@slipway/contract";
import type { Timers } from "./timers.ts";

export interface Silence {
  seen(): void;
  stop(): void;
}

const allowedBeats = 3;

/**
 * Calls back after that many heartbeats without a sign of life, and again at each beat while the callback fails. Counts
 * beats instead of time, so a machine that wakes from sleep does not give up its runners.
 */
export function watchSilence(timers: Timers, onLost: () => Promise<void>): Silence {
  let beats = 0;
  let stopped = false;
  let cancel = () => {};
  const wait = () => {
    if (!stopped) cancel = timers.after(runChannel.heartbeatMs, beat);
  };
  const beat = () => {
    beats += 1;
    if (beats < allowedBeats) wait();
    else onLost().catch(wait);
  };
  wait();
  return {
    seen() {
      // Do not count the current beat: it may end at once.
      beats = -1;
    },
    stop() {
      stopped = true;
      cancel();
    },
  };
}
