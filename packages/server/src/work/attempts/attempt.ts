import { type End, endAs, type SandboxInfo, SlipwayError } from "@slipway/contract";
import type { AttemptWork } from "@slipway/engine";
import { msToHandover, usualLife } from "../compute/life.ts";
import { isFullDisk } from "../full-disk.ts";
import { patiently } from "../planning/patience.ts";
import type { Checkpointed } from "./checkpoints.ts";
import { endByError, endOfRun, tellEnd } from "./ending.ts";
import type { Kept } from "./kept.ts";
import { endPlace, keepCheckpoint, leaveAttempt, restPlace, tellSandbox } from "./leave.ts";
import { speakerOf } from "./names.ts";
import { beginAttempt } from "./order.ts";
import { newPlace, openPlace } from "./place.ts";
import { attemptEnded } from "./reports.ts";
import { followRun, mayAskAgain, openRunAccount, startRun } from "./run.ts";
import type { Running } from "./running.ts";
import type { SharedPart } from "./shared/shared.ts";
import type { AttemptSurroundings } from "./surroundings.ts";

/** Brings one attempt into the state that the build asks for, and reports what comes of it. */
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
    return this.#running?.parts.run.lastSeen();
  }

  /** The last commit of its branch that is known here. */
  get tip(): string | null {
    return this.#kept?.tip ?? this.#kept?.offered ?? null;
  }

  /** Ignores a state that an earlier life of the attempt was to have. */
  become(wanted: AttemptWork): void {
    if (wanted.respawn < this.#wanted.respawn || this.#isOver) return;
    this.#wanted = wanted;
    if (!this.#isWaiting) void this.#inLine(() => this.#reconcile());
    this.#isWaiting = true;
  }

  /** Returns at once. */
  tell(part: SharedPart, { quiet }: { readonly quiet: boolean }): void {
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
      await patiently(() => leaveAttempt(this.#world, this.#wanted, this.#kept, { keep }), this.#world.closing);
    });
  }

  /** Lets go of the attempt as it is: another process continues it. */
  async release(): Promise<void> {
    this.#isOver = true;
    this.#released.abort(new SlipwayError("aborted", "the attempt is let go of"));
    await this.#inLine(() => this.#letGo());
  }

  /** Does one thing after another. A failure is only warned of. */
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
    let budgetMicroUsd = 0;
    try {
      // Read before money is asked for, so that a raise meanwhile counts.
      ({ budgetMicroUsd } = await this.#world.store.ledger.balance(this.#world.build.id));
      const kept = await this.#open(wanted);
      if (wanted.paused) return await this.#rest(kept, "paused");
      if (this.#running === undefined) await this.#run(kept);
      if (wanted.answer !== null) await this.#running?.answer(wanted.answer);
    } catch (error) {
      if (!this.#released.signal.aborted) await this.#fail(wanted, error, budgetMicroUsd);
    }
  }

  /** Reads what is kept of the attempt, or begins it, in the life that is wanted. */
  async #open(wanted: AttemptWork): Promise<Kept> {
    const known = this.#kept ?? (await this.#world.kept.read(wanted.id)) ?? (await beginAttempt(this.#world, wanted));
    this.#kept = known;
    if (wanted.respawn <= known.respawn) return known;
    await this.#letGo();
    await endPlace(this.#world, wanted, { keep: false });
    return await this.#keep({ respawn: wanted.respawn, part: 0, sandbox: null, heard: 0, refusedMicroUsd: null });
  }

  async #keep(change: Partial<Kept>): Promise<Kept> {
    if (this.#kept === undefined) throw new SlipwayError("internal", "nothing is kept of the attempt yet");
    this.#kept = { ...this.#kept, ...change };
    await this.#world.kept.write(this.#kept);
    return this.#kept;
  }

  /** Starts a run, or reports why there can be none. */
  async #run(known: Kept): Promise<void> {
    const { signal } = this.#released;
    let kept = known;
    if (kept.refusedMicroUsd !== null) {
      if (!(await mayAskAgain(this.#world, kept)))
        return await tellEnd(this.#world, kept, endAs("budget"), kept.refusedMicroUsd);
      kept = await this.#keep({ part: kept.part + 1, heard: 0, refusedMicroUsd: null });
    }
    const sandbox = await openPlace(this.#world, kept, signal);
    if (sandbox === undefined) return await tellEnd(this.#world, kept, endAs("runner_lost"));
    if (kept.sandbox === null) kept = await this.#keep(await newPlace(kept, sandbox));
    const info = await sandbox.info();
    await tellSandbox(this.#world, kept, info, "running");
    const running = await startRun(this.#world, kept, sandbox, { signal, checkpointed: this.#checkpointed });
    this.#running = running;
    running.follow(() => this.#follow(kept, running));
    this.#handOverInTime(running, info);
    await running.tellMain(await running.parts.repository.main());
  }

  async #follow(kept: Kept, running: Running): Promise<void> {
    const { listening } = running;
    try {
      const end = await followRun(this.#world, kept, running, (change) => this.#keep(change));
      if (!listening.aborted) void this.#inLine(() => this.#ended(running, end));
    } catch (error) {
      if (!listening.aborted) void this.#inLine(() => this.#unheard(running, error));
    }
  }

  async #ended(running: Running, end: End): Promise<void> {
    if (this.#running !== running || this.#kept === undefined) return;
    await this.#letGo();
    const refusedMicroUsd = end.reason === "budget" ? running.parts.budgetMicroUsd : undefined;
    if (refusedMicroUsd !== undefined) await this.#keep({ refusedMicroUsd });
    const known = await endOfRun(this.#world, end, running);
    if (end.reason === "runner_lost") await endPlace(this.#world, this.#wanted, { keep: false });
    await tellEnd(this.#world, this.#kept, known, refusedMicroUsd);
  }

  async #unheard(running: Running, error: unknown): Promise<void> {
    const { warn, build } = this.#world;
    warn(`${build.id}, ${speakerOf(this.#wanted)} is no longer heard: ${(error as Error).message}`);
    if (this.#running !== running || this.#kept === undefined) return;
    await this.#letGo();
    // If this machine's disk is full, the sandbox may be fine and a respawn would not help.
    await tellEnd(this.#world, this.#kept, isFullDisk(error) ? endByError(error) : endAs("runner_lost"));
  }

  /** Reports that the attempt never came to a run. */
  async #fail(wanted: AttemptWork, error: unknown, budgetMicroUsd: number): Promise<void> {
    const { warn, build, report } = this.#world;
    if (!(error instanceof SlipwayError)) warn(`${build.id}, ${speakerOf(wanted)}: ${(error as Error).stack}`);
    await this.#letGo();
    const end = endByError(error);
    const isRefused = end.reason === "budget" && this.#kept !== undefined;
    if (isRefused)
      await openRunAccount(this.#world, await this.#keep({ refusedMicroUsd: budgetMicroUsd }), budgetMicroUsd);
    const life = { part: 0, ...wanted, ...this.#kept };
    await report([attemptEnded(life, end, end.reason === "budget" ? budgetMicroUsd : undefined)]);
  }

  /** Stops the sandbox, and takes a checkpoint in case the sandbox is gone when the attempt resumes. */
  async #rest(kept: Kept, phase: "paused" | "handover"): Promise<void> {
    await this.#letGo();
    try {
      await restPlace(this.#world, kept, phase, this.#checkpointed);
    } catch (error) {
      const { warn, build } = this.#world;
      // A resume checks whether the sandbox still exists.
      warn(`${build.id}, ${speakerOf(kept)} rests (${phase}) without a checkpoint: ${(error as Error).message}`);
    }
  }

  /** Before the sandbox's life ends, gives it the next one: the runner continues from its last finished step. */
  #handOverInTime(running: Running, info: SandboxInfo): void {
    const { clock, life = usualLife } = this.#world;
    const timer = setTimeout(
      () => void this.#inLine(() => this.#handOver(running)),
      msToHandover(info, life, clock.now()),
    );
    timer.unref();
    running.listening.addEventListener("abort", () => clearTimeout(timer), { once: true });
  }

  async #handOver(running: Running): Promise<void> {
    if (this.#running !== running || this.#kept === undefined || this.#isOver) return;
    await this.#rest(this.#kept, "handover");
    await this.#reconcile();
  }

  readonly #checkpointed: Checkpointed = async (made) => {
    if (this.#kept !== undefined) await keepCheckpoint(this.#world, this.#kept, made, (change) => this.#keep(change));
  };

  async #letGo(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    await running?.letGo();
  }
}
