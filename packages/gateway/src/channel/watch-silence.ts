import { runChannel } from "@slipway/contract";
import type { Timers } from "./timers.ts";

export interface Silence {
  seen(): void;
  stop(): void;
}

const allowedBeats = 3;

/**
 * Calls back when so many heartbeats in a row brought nothing, and again at each beat while that fails. Beats are counted
 * instead of time, so that a machine that was asleep does not take its runners for lost when it wakes.
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
      // The beat that is under way is not counted: it may end at once.
      beats = -1;
    },
    stop() {
      stopped = true;
      cancel();
    },
  };
}
