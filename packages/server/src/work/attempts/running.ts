import type { TaskRun } from "@slipway/agent-host";
import { hasCode, SlipwayError } from "@slipway/contract";
import type { OfferAnswer } from "@slipway/engine";
import type { Sandbox } from "@slipway/sandbox";
import type { BuildRepository } from "../repository/repository.ts";
import type { Checkpoints } from "./checkpoints.ts";
import { patiently } from "./patiently.ts";
import type { SharedPart } from "./shared.ts";

export interface RunningParts {
  readonly run: TaskRun;
  readonly sandbox: Sandbox;
  readonly checkpoints: Checkpoints;
  readonly repository: BuildRepository;
  /** The commit of main that the attempt began with. */
  readonly base: string;
  /** The build's, when the run began. */
  readonly budgetMicroUsd: number;
  /** Aborts when the attempt is let go of. */
  readonly released: AbortSignal;
}

/** A run that this process hears, and tells what is new to it. */
export class Running {
  readonly run: TaskRun;
  readonly sandbox: Sandbox;
  readonly checkpoints: Checkpoints;
  readonly repository: BuildRepository;
  readonly budgetMicroUsd: number;
  readonly #parts: RunningParts;
  readonly #listening = new AbortController();
  readonly #over = new AbortController();
  #following: Promise<void> = Promise.resolve();
  /** What the run was told by this process. */
  #told: { readonly main: string; readonly offer: number };

  constructor(parts: RunningParts) {
    this.#parts = parts;
    ({ run: this.run, sandbox: this.sandbox, checkpoints: this.checkpoints } = parts);
    ({ repository: this.repository, budgetMicroUsd: this.budgetMicroUsd } = parts);
    this.#told = { main: parts.base, offer: 0 };
  }

  /** Aborts when nobody here listens any more. */
  get listening(): AbortSignal {
    return this.#listening.signal;
  }

  /** `listen` settles when nothing more is taken in. */
  follow(listen: () => Promise<void>): void {
    this.#following = listen();
  }

  /** Nothing more comes from the run. */
  ended(): void {
    this.#over.abort();
  }

  async share(part: SharedPart, quiet: boolean): Promise<void> {
    await this.run.send({ type: "shared", part, quiet }).catch(ifExpected);
  }

  async answer({ offer, findings, main }: OfferAnswer): Promise<void> {
    if (this.#told.offer >= offer) return;
    if (main !== null) await this.tellMain(main);
    if (await this.#deliver(() => this.run.send({ type: "findings", offer, findings: [...findings] })))
      this.#told = { ...this.#told, offer };
  }

  async tellMain(commit: string): Promise<void> {
    const { base, repository } = this.#parts;
    if (this.#told.main === commit) return;
    // All that is new since its beginning: a sandbox made from a snapshot may have missed what was told meanwhile.
    if (await this.#deliver(() => this.run.moveMain({ commit, bundle: repository.bundle({ base, tip: commit }) })))
      this.#told = { ...this.#told, main: commit };
  }

  /**
   * Whether the run has it. One that has ended, or whose sandbox is gone, is told nothing more; its end is heard elsewhere.
   * Fails when what is in the way does not pass soon.
   */
  async #deliver(tell: () => Promise<void>): Promise<boolean> {
    const signal = AbortSignal.any([this.#parts.released, this.#over.signal]);
    try {
      await patiently(tell, signal);
      return true;
    } catch (error) {
      if (signal.aborted || gone.some((code) => hasCode(error, code))) return false;
      throw error;
    }
  }

  /** The runner goes on until somebody finds it again. */
  async letGo(): Promise<void> {
    this.#listening.abort();
    await this.checkpoints[Symbol.asyncDispose]();
    await this.run[Symbol.asyncDispose]();
    await this.#following;
  }
}

const gone = ["run_ended", "sandbox_ended", "sandbox_not_found", "sandbox_not_running"] as const;

function ifExpected(error: unknown): void {
  if (!(error instanceof SlipwayError) || hasCode(error, "internal")) throw error;
}
