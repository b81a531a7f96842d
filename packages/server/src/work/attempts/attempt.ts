import { findRunner, startTaskRun } from "@slipway/agent-host";
import {
  afterEnd,
  type End,
  endAs,
  endText,
  hasCode,
  printable,
  type SandboxId,
  SlipwayError,
} from "@slipway/contract";
import type { AttemptWork } from "@slipway/engine";
import { projectPath, type Sandbox } from "@slipway/sandbox";
import { isFullDisk } from "../full-disk.ts";
import type { BuildRepository } from "../repository/repository.ts";
import { createCheckpoints, removeSnapshots } from "./checkpoints.ts";
import { freeClaims, keepClaims } from "./claims.ts";
import type { Kept } from "./kept.ts";
import { endPlace, hasFilledDisk, snapshotName, tellSandbox } from "./leave.ts";
import { createListener } from "./listen.ts";
import { runIdOf, speakerOf } from "./names.ts";
import { readOrder } from "./order.ts";
import { endByError, endOfRun } from "./outcome.ts";
import { patiently } from "./patiently.ts";
import { findPlace, isInstalled, leftPlaces, makePlace, removePlace } from "./place.ts";
import { attemptEnded, checkpointMade, endKeyOf } from "./reports.ts";
import { Running } from "./running.ts";
import type { SharedPart } from "./shared.ts";
import type { AttemptSurroundings } from "./surroundings.ts";

const hourMs = 3_600_000;
/** Of the time that its run works or waits. */
const totalMs = 8 * hourMs;
const fullDisk = "The sandbox was ended: its disk was full. Leave less on it.";

/** One attempt, brought into the state that is asked for, in the sandbox that it has by now. What comes of it is reported. */
export class Attempt {
  readonly #world: AttemptSurroundings;
  readonly #released = new AbortController();
  #wanted: AttemptWork;
  #kept: Kept | undefined;
  #running: Running | undefined;
  #line: Promise<void> = Promise.resolve();
  #isWaiting = false;
  #isOver = false;

  constructor(world: AttemptSurroundings, wanted: AttemptWork) {
    this.#world = world;
    this.#wanted = wanted;
    this.become(wanted);
  }

  get name(): { readonly task: string; readonly number: number } {
    return this.#wanted;
  }

  get heardAtMs(): number | undefined {
    return this.#running?.run.lastSeen();
  }

  /** The last commit of its branch that is known here. */
  get tip(): string | null {
    return this.#kept?.tip ?? this.#kept?.offered ?? null;
  }

  /** What came late changes nothing. */
  become(wanted: AttemptWork): void {
    if (wanted.respawn < this.#wanted.respawn || this.#isOver) return;
    this.#wanted = wanted;
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    void this.#inLine(() => this.#reconcile());
  }

  tell(part: SharedPart, { quiet }: { readonly quiet: boolean }): void {
    // Only told: nobody waits for it.
    void this.#inLine(async () => await this.#running?.share(part, quiet));
  }

  mainMoved(commit: string): Promise<void> {
    return this.#inLine(async () => await this.#running?.tellMain(commit));
  }

  /** `keep`: the sandbox's files are for the next attempt at the task. */
  async end({ keep }: { readonly keep: boolean }): Promise<void> {
    this.#isOver = true;
    this.#released.abort(new SlipwayError("aborted", "the attempt is ended"));
    await this.#inLine(async () => {
      await this.#letGo();
      await patiently(() => this.#leave(keep), this.#world.closing);
    });
  }

  /** Done again, it does what is left to do. */
  async #leave(keep: boolean): Promise<void> {
    await endPlace(this.#world, this.#wanted, { keep });
    const kept = this.#kept ?? (await this.#world.kept.read(this.#wanted.id));
    if (kept !== undefined) await removeSnapshots(this.#world.provider, kept.snapshots);
    await this.#world.kept.remove(this.#wanted.id);
    await freeClaims(this.#world, speakerOf(this.#wanted));
  }

  /** Leaves it as it is, for another process to go on with. */
  async release(): Promise<void> {
    this.#isOver = true;
    this.#released.abort(new SlipwayError("aborted", "the attempt is let go of"));
    await this.#inLine(() => this.#letGo());
  }

  /** One thing after another. What fails is warned of, and fails nobody else. */
  #inLine(work: () => Promise<void>): Promise<void> {
    const { warn, build } = this.#world;
    this.#line = this.#line.then(work).catch((error: Error) => {
      if (this.#released.signal.aborted && !(error instanceof SlipwayError)) return;
      warn(`${build.id}, ${speakerOf(this.#wanted)}: ${error.message}`);
    });
    return this.#line;
  }

  async #reconcile(): Promise<void> {
    this.#isWaiting = false;
    if (this.#isOver) return;
    const wanted = this.#wanted;
    try {
      const kept = await this.#open(wanted);
      if (wanted.paused) return await this.#pause(kept);
      await this.#run(kept);
      if (wanted.answer !== null) await this.#running?.answer(wanted.answer);
    } catch (error) {
      if (this.#released.signal.aborted) return;
      await this.#fail(wanted, error);
    }
  }

  /** What is kept of it, in the life that is wanted. */
  async #open(wanted: AttemptWork): Promise<Kept> {
    const { kept: files } = this.#world;
    const known = this.#kept ?? (await files.read(wanted.id)) ?? (await this.#begin(wanted));
    this.#kept = known;
    if (wanted.respawn <= known.respawn) return known;
    await this.#letGo();
    await endPlace(this.#world, wanted, { keep: false });
    return await this.#keep({ respawn: wanted.respawn, part: 0, sandbox: null, heard: 0, refusedMicroUsd: null });
  }

  async #begin(wanted: AttemptWork): Promise<Kept> {
    const { build, store, kept, repository, shared } = this.#world;
    const base = await (await repository()).main();
    const secrets = (await this.#world.secrets.of(build.id)).map(({ value: _value, ...named }) => named);
    const order = { ...(await readOrder(store, build, wanted, base)), secrets, shared: await shared.parts() };
    const { id, task, number, respawn } = wanted;
    const begun: Kept = {
      id,
      task,
      number,
      order,
      respawn,
      part: 0,
      sandbox: null,
      heard: 0,
      refusedMicroUsd: null,
      snapshots: [],
      checkpoints: 0,
      offered: null,
      tip: null,
      offeredBytes: 0,
    };
    await kept.write(begun);
    return begun;
  }

  async #keep(change: Partial<Kept>): Promise<Kept> {
    if (this.#kept === undefined) throw new SlipwayError("internal", "nothing is kept of the attempt yet");
    this.#kept = { ...this.#kept, ...change };
    await this.#world.kept.write(this.#kept);
    return this.#kept;
  }

  /** Sees to it that a run is under way, or tells why there can be none. */
  async #run(known: Kept): Promise<void> {
    if (this.#running !== undefined) return;
    let kept = known;
    if (kept.refusedMicroUsd !== null) {
      const { refusedMicroUsd } = kept;
      if (!(await this.#mayAskAgain(kept, refusedMicroUsd)))
        return await this.#tellEnd(kept, endAs("budget"), refusedMicroUsd);
      kept = await this.#keep({ part: kept.part + 1, heard: 0, refusedMicroUsd: null });
    }
    const sandbox = await this.#place(kept);
    if (sandbox === undefined) return await this.#tellEnd(kept, endAs("runner_lost"));
    await this.#start(this.#kept ?? kept, sandbox);
  }

  /** There is more money, or the build has heard of the refusal and wants it to go on all the same. */
  async #mayAskAgain(kept: Kept, refusedMicroUsd: number): Promise<boolean> {
    const { build, store } = this.#world;
    const { budgetMicroUsd } = await store.ledger.balance(build.id);
    if (budgetMicroUsd > refusedMicroUsd) return true;
    const told = await store.events.find(build.id, endKeyOf(kept));
    return told !== undefined && told.sequence <= (await store.builds.get(build.id)).appliedThrough;
  }

  /** Undefined: there was one, and it is gone. */
  async #place(kept: Kept): Promise<Sandbox | undefined> {
    const { build, settled } = this.#world;
    const { signal } = this.#released;
    // One of those that are ended may be this one: it waits for what it is in now.
    signal.throwIfAborted();
    if (kept.order.from === "last-attempt") await settled();
    const found = await patiently(() => findPlace(this.#world, build, kept), signal);
    if (found === undefined && kept.sandbox !== null) return undefined;
    const make = () => makePlace(this.#world, build, kept, signal).catch(findIfMade);
    const findIfMade = async (error: unknown) => {
      // A process that is gone has asked for it, from what was the latest then.
      const made = hasCode(error, "idempotency_conflict") ? await findPlace(this.#world, build, kept) : undefined;
      if (made === undefined) throw error;
      return made;
    };
    const sandbox = found ?? (await patiently(make, signal));
    if (kept.sandbox === null) {
      const isFresh = kept.snapshots.length === 0 && kept.order.from === "main";
      const installed = isFresh ? await isInstalled(sandbox) : kept.order.installed;
      await this.#keep({ sandbox: sandbox.id, order: { ...kept.order, installed } });
    }
    await tellSandbox(this.#world, kept, await sandbox.info(), "running");
    return sandbox;
  }

  async #start(kept: Kept, sandbox: Sandbox): Promise<void> {
    const { build, store, gateway, agent, workers } = this.#world;
    const { signal } = this.#released;
    const repository = await this.#world.repository();
    const id = runIdOf(kept.id, kept.respawn, kept.part);
    // Read before it is spent: what is raised meanwhile counts.
    const { budgetMicroUsd } = await store.ledger.balance(build.id);
    // Before the gateway opens it: so it is known whom the money is spent for. The build's own account holds all of them.
    await store.ledger.open({ id, build: build.id, task: kept.task, attempt: kept.id, agent, budgetMicroUsd });
    const exec = await findRunner(sandbox);
    const run = await patiently(
      () =>
        startTaskRun({
          sandbox,
          gateway,
          id,
          budgetMicroUsd,
          order: kept.order,
          ...(exec !== undefined && { exec }),
          env: { SLIPWAY_RUN_NAME: kept.id },
          task: { agent, workers, workdir: projectPath, limits: { totalMs } },
          main: repository.bundle({ tip: kept.order.base, signal }),
        }),
      signal,
    );
    const checkpoints = createCheckpoints({
      sandbox,
      name: snapshotName(build, kept.id),
      everyMs: this.#world.checkpointMs,
      made: async (snapshot, phase) => {
        await this.#checkpointed(sandbox.id, snapshot, phase);
        // Of one that has died meanwhile its end is told.
        const info = await sandbox.info().catch(() => undefined);
        if (info !== undefined) await tellSandbox(this.#world, kept, info, "running");
      },
      warn: (error) => signal.aborted || this.#world.warn(`${kept.id} has no new checkpoint: ${error.message}`),
    });
    const { base } = kept.order;
    const running = new Running({ run, sandbox, checkpoints, repository, base, released: signal });
    this.#running = running;
    running.follow(() => this.#follow(kept, running, repository, budgetMicroUsd));
    await running.tellMain(await repository.main());
  }

  async #follow(kept: Kept, running: Running, repository: BuildRepository, budgetMicroUsd: number): Promise<void> {
    const { run, sandbox, checkpoints, listening: signal } = running;
    const { build, store, bridge, shared, clock, report, warn } = this.#world;
    keepClaims(this.#world, speakerOf(kept), signal);
    await using listener = createListener({
      build,
      kept,
      sandbox,
      run,
      repository,
      store,
      bridge,
      shared,
      clock,
      report,
      signal,
      checkpoint: (phase) => checkpoints.wish(phase),
      received: async (change) => void (await this.#keep(change)),
      heard: async (sequence) => void (await this.#keep({ heard: sequence })),
    });
    try {
      for await (const event of run.events({ after: kept.heard, signal })) {
        checkpoints.heard();
        await listener.take(event);
      }
      const end = await run.ended;
      running.ended();
      if (!signal.aborted) void this.#inLine(() => this.#ended(running, end, budgetMicroUsd));
    } catch (error) {
      running.ended();
      if (signal.aborted) return;
      warn(`${build.id}, ${speakerOf(kept)} is not heard any more: ${(error as Error).message}`);
      void this.#inLine(async () => {
        if (this.#running !== running) return;
        await this.#letGo();
        // Its sandbox may be well, and comes back no better from a checkpoint.
        await this.#tellEnd(kept, isFullDisk(error) ? endByError(error) : endAs("runner_lost"));
      });
    }
  }

  async #ended(running: Running, end: End, budgetMicroUsd: number): Promise<void> {
    if (this.#running !== running || this.#kept === undefined) return;
    await this.#letGo();
    if (end.reason === "budget") await this.#keep({ refusedMicroUsd: budgetMicroUsd });
    if (end.reason !== "runner_lost") return await this.#tellEnd(this.#kept, endOfRun(end), budgetMicroUsd);
    const isFull = await hasFilledDisk(this.#world, running.sandbox.id);
    await endPlace(this.#world, this.#wanted, { keep: false });
    // From its last checkpoint it would fill the disk again.
    await this.#tellEnd(this.#kept, isFull ? endAs("disk_full", fullDisk) : end);
  }

  async #tellEnd(kept: Kept, end: End, budgetMicroUsd?: number): Promise<void> {
    const { build, bridge, shared, report } = this.#world;
    await report([attemptEnded(kept, end, budgetMicroUsd)]);
    if (afterEnd(end) !== "retry") return;
    const [key, from] = [`errors:${runIdOf(kept.id, kept.respawn, kept.part)}`, speakerOf(kept)];
    const payload = { title: `${from} has failed`, text: printable(endText(end)).slice(-4000) };
    // Only told: nobody waits for it.
    await bridge.publish(build.id, { topic: "errors", key, from, payload }).catch(() => {});
    shared.changed("errors", from);
  }

  /** It never came to a run. */
  async #fail(wanted: AttemptWork, error: unknown): Promise<void> {
    const { warn, report, build } = this.#world;
    if (!(error instanceof SlipwayError)) warn(`${build.id}, ${speakerOf(wanted)}: ${(error as Error).stack}`);
    await this.#letGo();
    await report([attemptEnded({ part: 0, ...wanted, ...this.#kept }, endByError(error))]);
  }

  async #checkpointed(sandbox: SandboxId, snapshot: Kept["snapshots"][number], phase: string): Promise<void> {
    const { build, clock, report, provider } = this.#world;
    const { snapshots, checkpoints } = await this.#keep({
      snapshots: [...(this.#kept?.snapshots ?? []), snapshot],
      checkpoints: (this.#kept?.checkpoints ?? 0) + 1,
    });
    const kept = { id: this.#wanted.id, checkpoints };
    await report([checkpointMade(build, kept, { sandbox, snapshot, phase }, clock.now())]);
    const inUse = await removeSnapshots(provider, snapshots.slice(0, -1));
    await this.#keep({ snapshots: [...inUse, snapshot] });
    // What it began with is in there.
    if (checkpoints === 1)
      for (const left of await leftPlaces(this.#world, build, this.#wanted)) await removePlace(this.#world, left);
  }

  /** Nothing runs, and the files are kept: by the sandbox, and by a checkpoint in case that it is away for long. */
  async #pause(kept: Kept): Promise<void> {
    const { build, provider, warn } = this.#world;
    const { sandbox: id } = kept;
    await this.#letGo();
    if (id === null) return;
    try {
      const sandbox = await provider.get(id);
      const info = await sandbox.info();
      if (info.state === "stopped") return;
      await sandbox.stop();
      const snapshot = await sandbox.snapshot({ name: snapshotName(build, kept.id) });
      await this.#checkpointed(id, snapshot.id, "paused");
      await tellSandbox(this.#world, kept, info, "stopped");
    } catch (error) {
      // Whether it is there is looked at when it is to go on.
      warn(`${build.id}, ${speakerOf(kept)} is paused without a checkpoint: ${(error as Error).message}`);
    }
  }

  async #letGo(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    await running?.letGo();
  }
}
