import { hasCode, type SandboxId } from "@slipway/contract";
import type { Box } from "../../../keeper/boxes/boxes.ts";
import type { Lifecycle } from "../../../keeper/boxes/lifecycle.ts";
import type { Clock } from "../../../keeper/clock.ts";
import type { Links } from "../links.ts";
import type { SandboxRecord } from "../record.ts";
import type { Runs } from "./runs.ts";

/** The keeper's own link to each running sandbox: its loss is what tells that one has vanished. */
export interface LinkWatch extends Disposable {
  /** Its record has changed. */
  look(box: Box<SandboxRecord>): void;
  forget(box: Box<SandboxRecord>): void;
}

export interface LinkWatchParts {
  readonly clock: Clock;
  readonly links: Links;
  readonly runs: Pick<Runs, "keep">;
  readonly lifecycle: Pick<Lifecycle<SandboxRecord>, "died">;
  onError(box: Box<SandboxRecord>, error: unknown): void;
}

/** A link that is lost for a moment is back sooner. */
const firstLookMs = 500;
const nextLooksMs = 15_000;

export function watchLinks({ clock, links, runs, lifecycle, onError }: LinkWatchParts): LinkWatch {
  /** By sandbox: the name of the start that is watched. */
  const watched = new Map<SandboxId, { name: string; cancel: () => void }>();

  const lookAfter = (box: Box<SandboxRecord>, name: string, delayMs: number) => {
    const entry = watched.get(box.id);
    if (entry?.name !== name) return;
    entry.cancel();
    entry.cancel = clock.after(delayMs, () => {
      if (box.record.run?.name !== name || box.record.state !== "running") return;
      lifecycle
        .died(box)
        .catch((error: unknown) => {
          if (!hasCode(error, "sandbox_not_found")) onError(box, error);
        })
        .finally(() => lookAfter(box, name, nextLooksMs));
    });
  };
  const stopLooking = (id: SandboxId) => {
    watched.get(id)?.cancel();
    watched.delete(id);
  };
  return {
    look(box) {
      const { run, state } = box.record;
      if (run === null || state !== "running") return stopLooking(box.id);
      if (watched.get(box.id)?.name === run.name) return;
      stopLooking(box.id);
      const { name } = run;
      watched.set(box.id, { name, cancel: () => {} });
      // Until it is connected, as after a take-over, nothing tells that it lives.
      lookAfter(box, name, nextLooksMs);
      links.get(box.record).onState((linked) => {
        const entry = watched.get(box.id);
        if (entry?.name !== name) return;
        entry.cancel();
        if (linked === "lost") return lookAfter(box, name, firstLookMs);
        // A keep-alive may have come while it was lost.
        runs.keep(box).catch(() => undefined);
      });
      // When it is connected already, an answer says so.
      runs.keep(box).then(
        () => watched.get(box.id)?.name === name && watched.get(box.id)?.cancel(),
        () => undefined,
      );
    },
    forget: ({ id }) => stopLooking(id),
    [Symbol.dispose]() {
      for (const id of [...watched.keys()]) stopLooking(id);
    },
  };
}
