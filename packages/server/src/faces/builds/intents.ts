import { randomUUID } from "node:crypto";
import { type BuildId, createLanes, type IntentView, SlipwayError } from "@slipway/contract";
import { editIntent, type NewEvent, readReport, readState, report, type Store } from "@slipway/engine";
import type { BuildMethods } from "./face.ts";
import { intentViewOf } from "./views.ts";

export interface IntentParts {
  readonly store: Store;
  /** Keeps a report and lets it have its effect. */
  tell(build: BuildId, event: NewEvent): Promise<void>;
}

export interface BuildIntents extends Pick<BuildMethods, "intent" | "editIntent"> {
  /** Does nothing for an intent that nobody is waited for with. */
  release(build: BuildId): Promise<void>;
}

export function createBuildIntents({ store, tell }: IntentParts): BuildIntents {
  /** An edit begins with what the one before has left. */
  const { run: inTurn } = createLanes<BuildId>();
  return {
    intent: async (build) => (await latestIntent(store, build)).latest,

    editIntent: (build, edit, key = randomUUID()) =>
      inTurn(build, async () => {
        const { latest, isHeld } = await latestIntent(store, build);
        if (!isHeld) throw new SlipwayError("intent_locked", "the build does not wait for edits of its intent");
        const open = editIntent({ status: "open", intent: latest.intent }, edit);
        await tell(build, report("intent.edited", `intent.edited:${key}`, { open }));
        return { ...open, hash: null, lockedAtMs: null };
      }),

    release: (build) =>
      inTurn(build, async () => {
        const { isHeld } = await latestIntent(store, build);
        if (isHeld) await tell(build, report("intent.released", "intent.released", {}));
      }),
  };
}

interface Latest {
  readonly latest: IntentView;
  /** The user has the next word. */
  readonly isHeld: boolean;
}

/** With what has been said about it and nobody has taken in yet. */
async function latestIntent({ builds, events }: Store, build: BuildId): Promise<Latest> {
  const stored = await builds.state(build);
  const [record] = await builds.records(build, "intents");
  let latest = intentViewOf(record);
  let isHeld = readState(stored).planning?.step === "held";
  for (const event of await events.read(build, stored.build.appliedThrough, { source: "report" })) {
    const told = readReport(event);
    if (told?.type === "intent.edited") latest = { ...told.data.open, hash: null, lockedAtMs: null };
    if (told?.type === "intent.released") isHeld = false;
  }
  return { latest, isHeld };
}
