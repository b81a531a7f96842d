import { type AttemptId, afterEnd, endAs, microUsdPerUsd, newId, type SandboxId } from "@slipway/contract";
import type { AttemptWork, LedgerSettlement, NewEvent, WorkingBuild } from "@slipway/engine";
import {
  type AttemptName,
  deathOf,
  type Fate,
  fateOf,
  type SimulationSettings,
  startMsOf,
  stepMicroUsdOf,
} from "./fate.ts";
import type { Notice, Taken } from "./host.ts";
import type { Clock } from "./manual-clock.ts";
import { attemptEnded, attemptHeard, attemptOffered, checkpointMade, sandboxChanged } from "./reports.ts";

/** Sees what really happens in a simulated world, whatever is reported of it. */
export interface Witness {
  started(name: AttemptName, respawn: number): void;
  stepped(name: AttemptName, step: number): void;
  spent(name: AttemptName, microUsd: number): void;
  /** A sandbox has begun its next life. */
  handedOver(name: AttemptName): void;
}

/** The world as an attempt sees it. */
export interface Surroundings {
  readonly settings: SimulationSettings;
  readonly clock: Clock;
  readonly witness: Witness | undefined;
  /** Reports to the host; `then` is not called if the host fails. */
  tell(notice: Notice, then?: (taken: Taken) => void): void;
}

/** The limit of an attempt's account. The build's own limit is the effective one. */
const attemptBudgetMicroUsd = 1_000_000 * microUsdPerUsd;

/**
 * One attempt and its sandbox. The money for each step is reserved before it and settled after it. A finished step stays
 * finished, whatever happens to the sandbox.
 */
export class SimulatedAttempt {
  readonly id: AttemptId;
  readonly name: AttemptName;
  readonly #build: WorkingBuild;
  readonly #world: Surroundings;
  #sandbox: SandboxId;
  #createdAt: number;
  /** When its present life began. */
  #bornAt: number;
  #costMicroUsd = 0;
  #isDestroyed = false;
  #respawn: number;
  #isPaused: boolean;
  #finished = 0;
  /** Time left of the step whose money is reserved. Null: no step. */
  #leftMs: number | null = null;
  #dueAt = 0;
  #cancelTimer: (() => void) | null = null;
  #refusals = 0;
  #state: "asking" | "working" | "refused" | "over" = "asking";
  #silentSince: number | null = null;
  /** Its sandbox is gone and nobody has noticed. */
  #isLost = false;
  /** Counts its sandboxes: an answer for an earlier one is too late. */
  #life = 0;

  constructor(build: WorkingBuild, { id, task, number, respawn, paused }: AttemptWork, world: Surroundings) {
    this.id = id;
    this.name = { build: build.id, task, number };
    this.#build = build;
    this.#world = world;
    this.#respawn = respawn;
    this.#isPaused = paused;
    this.#createdAt = world.clock.now();
    this.#bornAt = this.#createdAt;
    this.#sandbox = newId("sbx", this.#createdAt);
    this.#begin();
  }

  get isAlive(): boolean {
    return this.#silentSince === null;
  }

  get heardAtMs(): number {
    return this.#silentSince ?? this.#world.clock.now();
  }

  /** Moves it into the requested state. Ignores outdated requests. */
  become({ respawn, paused }: AttemptWork): void {
    if (respawn < this.#respawn) return;
    if (respawn > this.#respawn) this.#respawnAs(respawn, paused);
    else if (paused) this.#pause();
    else this.#resume();
  }

  /** Reports a lost sandbox. */
  notice(): void {
    if (!this.#isLost) return;
    this.#isLost = false;
    this.#tell({
      reports: [attemptEnded(this.name, this.#respawn, { end: endAs("runner_lost") }), ...this.#destroyed()],
    });
  }

  end(): void {
    const settles = this.#cut(this.#doneShare());
    this.#silentSince ??= this.#now;
    this.#tell({ ...settles, reports: this.#destroyed() });
  }

  #respawnAs(respawn: number, paused: boolean): void {
    this.end();
    this.#respawn = respawn;
    this.#isPaused = paused;
    this.#silentSince = null;
    this.#isLost = false;
    this.#createdAt = this.#now;
    this.#bornAt = this.#now;
    this.#costMicroUsd = 0;
    this.#sandbox = newId("sbx", this.#createdAt);
    this.#isDestroyed = false;
    this.#begin();
  }

  #begin(): void {
    this.#world.witness?.started(this.name, this.#respawn);
    const startMs = startMsOf(this.#world.settings, this.name);
    const life = this.#life;
    const speak = () => {
      if (life === this.#life) this.#speak();
    };
    if (startMs === 0) speak();
    else this.#world.clock.after(startMs, speak);
  }

  /** The first word. */
  #speak(): void {
    const { build, task } = this.name;
    const opens = { id: this.id, build, task, attempt: this.id, budgetMicroUsd: attemptBudgetMicroUsd };
    const heard = attemptHeard(this.name, this.#respawn, this.#sandbox);
    this.#proceed({ opens, reports: [sandboxChanged(this.#sandboxLife, "running", this.#now), heard] });
  }

  #pause(): void {
    this.#isPaused = true;
    if (this.#cancelTimer === null) return;
    this.#cancelTimer();
    this.#cancelTimer = null;
    this.#leftMs = Math.max(0, this.#dueAt - this.#now);
  }

  #resume(): void {
    // A pause stops the sandbox.
    if (this.#isPaused) this.#bornAt = this.#now;
    this.#isPaused = false;
    if (this.#state === "refused") this.#proceed({});
    else if (this.#state === "working" && this.#cancelTimer === null) this.#work();
  }

  /** Reports to the host, and in the same call reserves the money for the next step, if there is one. */
  #proceed(told: Omit<Notice, "build">): void {
    if (this.#finished === this.#fate.steps) this.#finish(told);
    else this.#ask(told);
  }

  #finish({ reports = [], ...told }: Omit<Notice, "build">): void {
    this.#state = "over";
    const { end, fix } = this.#fate;
    const offers = afterEnd(end) === "wait" ? [] : [attemptOffered(this.name, this.#respawn)];
    const ends = attemptEnded(this.name, this.#respawn, { end, fix });
    this.#tell({ ...told, reports: [...reports, ...offers, ends] });
  }

  #ask(told: Omit<Notice, "build">): void {
    this.#state = "asking";
    const life = this.#life;
    const [request, account, holder] = [this.#request, this.id, this.#sandbox];
    const reserves = { request, account, holder, kind: this.#kind, microUsd: 2 * this.#stepMicroUsd };
    this.#tell({ ...told, reserves }, ({ reserved, budgetMicroUsd }) => {
      if (life === this.#life) this.#answered(reserved, budgetMicroUsd);
      else if (reserved) this.#tell({ settles: settlement(request, 0) });
    });
  }

  #answered(reserved: boolean, budgetMicroUsd: number): void {
    if (reserved) {
      this.#state = "working";
      this.#leftMs = this.#fate.stepMs;
      if (!this.#isPaused) this.#work();
      return;
    }
    this.#state = "refused";
    if (this.#isPaused) return;
    const occasion = `:refused-${++this.#refusals}`;
    const ended = { end: endAs("budget"), budgetMicroUsd };
    this.#tell({ reports: [attemptEnded(this.name, this.#respawn, ended, occasion)] });
  }

  #work(): void {
    const { steps, stepMs } = this.#fate;
    const death = deathOf(this.#world.settings, this.name, { respawn: this.#respawn, steps });
    const isLast = death?.step === this.#finished + 1;
    const leftMs = this.#leftMs ?? 0;
    this.#dueAt = this.#now + leftMs;
    const delayMs = isLast ? Math.max(0, leftMs - Math.floor(stepMs / 2)) : leftMs;
    const lifeMs = this.#lifeMs;
    if (lifeMs < delayMs) {
      this.#cancelTimer = this.#world.clock.after(lifeMs, () => this.#handOver(leftMs - lifeMs));
      return;
    }
    this.#cancelTimer = this.#world.clock.after(delayMs, () => {
      this.#cancelTimer = null;
      if (isLast) this.#die(death.as === "died");
      else this.#finishStep();
    });
  }

  /** The step goes on where it was. */
  #handOver(leftMs: number): void {
    const { handoverMs = 0 } = this.#world.settings.life ?? {};
    this.#leftMs = leftMs;
    this.#bornAt = this.#now + handoverMs;
    this.#dueAt = this.#bornAt + leftMs;
    this.#world.witness?.handedOver(this.name);
    this.#cancelTimer = this.#world.clock.after(handoverMs, () => {
      this.#cancelTimer = null;
      this.#work();
    });
  }

  /** What is left of its present life. */
  get #lifeMs(): number {
    const { life } = this.#world.settings;
    return life === undefined ? Number.POSITIVE_INFINITY : Math.max(0, this.#bornAt + life.lifetimeMs - this.#now);
  }

  #finishStep(): void {
    const settles = this.#settle(1);
    this.#finished++;
    this.#world.witness?.stepped(this.name, this.#finished);
    const at = { attempt: this.id, step: this.#finished, nowMs: this.#now };
    const reports = this.#finished < this.#fate.steps ? [checkpointMade(this.#sandboxLife, at)] : [];
    this.#proceed({ settles, reports });
  }

  #die(isNoticed: boolean): void {
    const settles = this.#cut(0.5);
    this.#silentSince = this.#now;
    this.#isLost = true;
    this.#tell({ ...settles });
    if (isNoticed) this.notice();
  }

  /** Ends the current step. */
  #cut(doneShare: number): Pick<Notice, "settles"> | undefined {
    this.#life++;
    this.#state = "over";
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    return this.#leftMs === null ? undefined : { settles: this.#settle(doneShare) };
  }

  #settle(doneShare: number): LedgerSettlement {
    const microUsd = Math.round(doneShare * this.#stepMicroUsd);
    this.#leftMs = null;
    this.#costMicroUsd += microUsd;
    this.#world.witness?.spent(this.name, microUsd);
    return settlement(this.#request, microUsd, doneShare === 1 ? "complete" : "cut");
  }

  /** The finished share of the current step. */
  #doneShare(): number {
    const leftMs = this.#cancelTimer === null ? (this.#leftMs ?? 0) : Math.max(0, this.#dueAt - this.#now);
    return Math.max(0, 1 - leftMs / this.#fate.stepMs);
  }

  /** Reported once per sandbox. */
  #destroyed(): NewEvent[] {
    if (this.#isDestroyed) return [];
    this.#isDestroyed = true;
    return [sandboxChanged(this.#sandboxLife, "destroyed", this.#now)];
  }

  #tell(told: Omit<Notice, "build">, then?: (taken: Taken) => void): void {
    this.#world.tell({ build: this.name.build, ...told }, then);
  }

  get #sandboxLife() {
    const [id, build, task] = [this.#sandbox, this.#build, this.name.task];
    return { id, build, task, createdAt: this.#createdAt, costMicroUsd: this.#costMicroUsd };
  }

  /** Computed each time: there may be very many attempts. */
  get #fate(): Fate {
    return fateOf(this.#world.settings, this.name);
  }

  get #stepMicroUsd(): number {
    return stepMicroUsdOf(this.#world.settings, this.name, this.#finished + 1);
  }

  get #request(): string {
    // Contains the sandbox: a world lost with its process restarts the attempt in another sandbox.
    return `${this.#sandbox}:${this.#finished + 1}`;
  }

  get #kind(): "model" | "compute" {
    return this.#finished % 2 === 0 ? "model" : "compute";
  }

  get #now(): number {
    return this.#world.clock.now();
  }
}

function settlement(request: string, microUsd: number, end: LedgerSettlement["end"] = "cut"): LedgerSettlement {
  return { request, microUsd, provider: "simulated", end, estimated: false };
}
