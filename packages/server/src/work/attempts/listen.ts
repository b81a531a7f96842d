import type { TaskRun } from "@slipway/agent-host";
import {
  type AgentEvent,
  type BridgeTopic,
  type ErrorCode,
  hasCode,
  type NumberedEvent,
  type Offered,
  type OutgoingMessage,
  printable,
  type RunnerEvent,
  repositoryPathSchema,
  SlipwayError,
  type TaskPhase,
} from "@slipway/contract";
import type { AgentActionRecord, Bridge, NewEvent, Store, WorkingBuild } from "@slipway/engine";
import type { Sandbox } from "@slipway/sandbox";
import { whenDatabaseIsThere } from "../planning/patience.ts";
import type { BuildRepository } from "../repository/repository.ts";
import { claimMs } from "./claims.ts";
import type { Kept } from "./kept.ts";
import { speakerOf } from "./names.ts";
import { takeBranch, takeOffer } from "./offers.ts";
import { actionOf, attemptHeard, attemptProgress, commandText } from "./reports.ts";
import type { Shared } from "./shared/shared.ts";

export interface ListenOptions {
  readonly build: WorkingBuild;
  readonly kept: Kept;
  readonly sandbox: Pick<Sandbox, "id">;
  readonly run: Pick<TaskRun, "id" | "send" | "readOffer" | "readBranch">;
  readonly repository: BuildRepository;
  readonly store: Pick<Store, "actions">;
  readonly bridge: Pick<Bridge, "publish" | "claim">;
  readonly shared: Shared;
  readonly clock: { now(): number };
  report(events: readonly NewEvent[]): Promise<void>;
  /** Called when a phase is finished. */
  checkpoint(phase: TaskPhase): void;
  /** Stores the outcome of an offer, or of a branch that is not offered yet. */
  received(change: Pick<Kept, "offeredBytes"> & Partial<Pick<Kept, "offered" | "tip">>): Promise<void>;
  /** Stores that events up to this number need not be taken in again. */
  heard(sequence: number): Promise<void>;
  readonly signal: AbortSignal;
}

/** How much one run may store and pass on, because its sandbox is untrusted. */
const most = { actions: 20_000, progress: 1000, messages: 1000, offers: 60, branches: 60, fileChanges: 200 };
/** After the most branches, one in this time is still taken in. */
const branchEveryMs = 60_000;
const maxOfferedBytes = 1024 ** 3;
/** Reserves the rest for offers. */
const maxShownBytes = maxOfferedBytes / 2;

/** Disposing it waits for the work beside the events. */
export interface Listener extends AsyncDisposable {
  /** Takes in the events of a run, one after another. Repeating one changes nothing. */
  take(event: NumberedEvent): Promise<void>;
}

export function createListener(options: ListenOptions): Listener {
  const { build, kept, sandbox, run, store, bridge, shared, clock, report, signal } = options;
  let { offeredBytes, tip } = kept;
  const counts = { actions: 0, progress: 0, messages: 0, offers: 0, branches: 0 };
  const inputs = new Map<string, string>();
  const speaker = speakerOf(kept);
  let isHeard = false;
  let shownAt = Number.NEGATIVE_INFINITY;
  let phase: TaskPhase = "initialise";

  let showing = Promise.resolve();
  let goingOn = Promise.resolve();
  let failure: { readonly error: unknown } | undefined;

  /** Keeps a large branch or a slow disk from delaying events. The next event throws its failure. */
  const beside = (work: Promise<void>): Promise<void> => {
    const ended = work.catch((error: unknown) => {
      failure ??= { error };
    });
    goingOn = goingOn.then(() => ended);
    return ended;
  };

  /** Ignores that the run ended or its sandbox is gone, because its end says so. */
  const unlessGone = (error: unknown) => {
    if (signal.aborted || !gone.some((code) => hasCode(error, code))) throw error;
  };

  const within = (kind: keyof typeof counts) => ++counts[kind] <= most[kind];

  const publish = async (name: number | string, message: Message) => {
    if (!within("messages")) return;
    const said = { ...message, key: `${run.id}:${name}:${message.topic}`, from: speaker } as OutgoingMessage;
    // Optional for others: it may be too long, or the bridge full or away.
    await whenDatabaseIsThere(() => bridge.publish(build.id, said), signal).catch(ifExpected);
  };

  const progress = async (said: NumberedEvent, status: string, text = "") => {
    if (within("progress")) await report([attemptProgress(kept, said, { phase, status, text })]);
  };

  const act = async (sequence: number, agent: string, event: AgentEvent) => {
    const action = actionOf(event, inputs);
    if (action === undefined || !within("actions")) return;
    const name = { build: build.id, attempt: kept.id, run: run.id, sequence };
    const record: AgentActionRecord = { ...name, agent, at: clock.now(), ...action };
    await whenDatabaseIsThere(() => store.actions.record([record]), signal);
  };

  const claim = async ({ id, paths }: Extract<RunnerEvent, { type: "claim" }>) => {
    const plain = paths.filter((path) => repositoryPathSchema.safeParse(path).success);
    if (plain.length === 0 || !within("messages")) return;
    const answer = await bridge.claim(build.id, { paths: plain, owner: speaker, leaseMs: claimMs }).catch(ifExpected);
    // Without an answer the agent continues.
    if (answer === undefined) return;
    const held = answer.granted ? [] : answer.held.slice(0, 64).map(({ path, owner }) => ({ path, owner }));
    await run.send({ type: "claimed", id, granted: answer.granted, held });
    if (answer.granted) shared.changed("ownership");
  };

  const offer = async (sequence: number, offered: Offered) => {
    if (!within("offers")) return;
    await showing;
    const mostBytes = Math.max(0, maxOfferedBytes - offeredBytes);
    const outcome = await takeOffer(options.repository, run, kept, offered, { mostBytes, signal });
    const { taken } = outcome;
    offeredBytes += outcome.bytes;
    tip = taken?.commit ?? tip;
    // Stored before it is reported, so that whoever reads the report finds it.
    await options.received({ offeredBytes, ...(taken && { offered: taken.commit, tip: taken.commit }) });
    await report([outcome.report]);
    shared.changed("merges");
    for (const [index, { path, change, after }] of (taken?.changes ?? []).slice(0, most.fileChanges).entries()) {
      const payload = { sandbox: sandbox.id, path, action: changeWords[change], hash: after ?? null };
      await publish(`${sequence}.${index}`, { topic: "file-change", payload });
    }
    if (taken !== undefined) shared.changed("conflicts");
  };

  /** Takes in the branch to find overlaps before the offer. Mistakes in it are reported with the offer. */
  const show = async (commit: string) => {
    const mostBytes = maxShownBytes - offeredBytes;
    if (commit === tip || mostBytes <= 0) return;
    if (!within("branches") && clock.now() - shownAt < branchEveryMs) return;
    shownAt = clock.now();
    const { taken, bytes } = await takeBranch(options.repository, run, kept, { mostBytes, signal });
    offeredBytes += bytes;
    tip = taken ?? tip;
    await options.received({ offeredBytes, tip });
    if (taken !== undefined) shared.changed("conflicts");
  };

  const take = async (said: NumberedEvent) => {
    const { sequence, event } = said;
    switch (event.type) {
      case "agent":
        return await act(sequence, event.agent, event.event);
      case "phase":
        phase = event.phase;
        shared.progress(speaker, `${event.phase}: ${event.status}`);
        if (event.status === "finished") options.checkpoint(phase);
        await progress(said, event.status, event.round === 1 ? "" : `round ${event.round}`);
        return await publish(sequence, { topic: "progress", payload: { phase, text: event.status } });
      case "command":
        phase = event.phase;
        return await progress(said, event.ok ? "passed" : "failed", commandText(event));
      case "committed":
        await progress(said, "committed", event.commit.slice(0, 10));
        showing = beside(showing.then(() => show(event.commit)).catch(unlessGone));
        return;
      case "claim":
        return await claim(event);
      case "told": {
        const payload = { title: printable(event.title), text: printable(event.text) };
        await publish(sequence, { topic: "discoveries", payload });
        return shared.changed("discoveries", speaker);
      }
      case "offered":
        return await offer(sequence, event);
      default:
        return;
    }
  };

  return {
    async take(numbered) {
      if (failure !== undefined) throw failure.error;
      if (!isHeard) await report([attemptHeard(kept, sandbox.id, run.id)]);
      isHeard = true;
      await take(numbered).catch(unlessGone);
      if (milestones.has(numbered.event.type)) void beside(options.heard(numbered.sequence));
    },
    [Symbol.asyncDispose]: () => goingOn,
  };
}

/** After these events, earlier ones are not taken in again. */
const milestones: ReadonlySet<string> = new Set(["phase", "command", "committed", "claim", "told", "offered"]);
const changeWords = { added: "created", changed: "changed", deleted: "deleted", renamed: "changed" } as const;

type Message = { [T in BridgeTopic]: Pick<Extract<OutgoingMessage, { topic: T }>, "topic" | "payload"> }[BridgeTopic];

const gone: readonly ErrorCode[] = [
  "provider_unavailable",
  "run_ended",
  "sandbox_ended",
  "sandbox_not_found",
  "sandbox_not_running",
  "too_large",
];

function ifExpected(error: unknown): undefined {
  if (!(error instanceof SlipwayError)) throw error;
}
