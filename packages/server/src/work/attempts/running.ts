import type { TaskRun } from "@slipway/agent-host";
import { hasCode, SlipwayError } from "@slipway/contract";
import type { OfferAnswer } from "@slipway/engine";
import type { Sandbox } from "@slipway/sandbox";
import { patiently } from "../planning/patience.ts";
import type { BuildRepository } from "../repository/repository.ts";
import type { Checkpoints } from "./checkpoints.ts";
import type { SharedPart } from "./shared/shared.ts";

interface RunningParts {
  readonly run: TaskRun;
  readonly sandbox: Sandbox;
  readonly checkpoints: Checkpoints;
  readonly repository: BuildRepository;
  /** The main that the attempt started with. */
  readonly base: string;
  /** The build's budget when the run started. */
  readonly budgetMicroUsd: number;
  /** Aborts when the attempt is let go of. */
  readonly released: AbortSignal;
}

/** A run that this process follows and sends news to. */
export class Running {
  readonly parts: RunningParts;
  readonly #listening = new AbortController();
  readonly #over = new AbortController();
  #following: Promise<void> = Promise.resolve();
  /** What this process has sent to the run. */
  #told: { readonly main: string; readonly offer: number };

  constructor(parts: RunningParts) {
    this.parts = parts;
    this.#told = { main: parts.base, offer: 0 };
  }

  /** Aborts when this process stops listening. */
  get listening(): AbortSignal {
    return this.#listening.signal;
  }

  /** `listen` must settle once it takes in nothing more. */
  follow(listen: () => Promise<void>): void {
    this.#following = listen();
  }

  /** The run has sent its last event. */
  ended(): void {
    this.#over.abort();
  }

  async share(part: SharedPart, quiet: boolean): Promise<void> {
    await this.parts.run.send({ type: "shared", part, quiet }).catch(ifExpected);
  }

  async answer({ offer, findings, main }: OfferAnswer): Promise<void> {
    if (this.#told.offer >= offer) return;
    if (main !== null) await this.tellMain(main);
    if (await this.#deliver(() => this.parts.run.send({ type: "findings", offer, findings: [...findings] })))
      this.#told = { ...this.#told, offer };
  }

  async tellMain(commit: string): Promise<void> {
    const { base, repository } = this.parts;
    if (this.#told.main === commit) return;
    // Bundles everything since the start: a sandbox made from a snapshot may have missed earlier news.
    if (
      await this.#deliver(() => this.parts.run.moveMain({ commit, bundle: repository.bundle({ base, tip: commit }) }))
    )
      this.#told = { ...this.#told, main: commit };
  }

  /**
   * Returns whether the run got it. A run that ended or whose sandbox is gone gets nothing; its end is handled elsewhere.
   * Fails if the obstacle does not pass soon.
   */
  async #deliver(tell: () => Promise<void>): Promise<boolean> {
    const signal = AbortSignal.any([this.parts.released, this.#over.signal]);
    try {
      await patiently(tell, signal);
      return true;
    } catch (error) {
      if (signal.aborted || gone.some((code) => hasCode(error, code))) return false;
      throw error;
    }
  }

  /** The runner continues until a process finds it again. */
  async letGo(): Promise<void> {
    this.#listening.abort();
    await this.parts.checkpoints[Symbol.asyncDispose]();
    await this.parts.run[Symbol.asyncDispose]();
    await this.#following;
  }
}

const gone = ["run_ended", "sandbox_ended", "sandbox_not_found", "sandbox_not_running"] as const;

function ifExpected(error: unknown): void {
  if (!(error instanceof SlipwayError) || hasCode(error, "internal")) throw error;
}
