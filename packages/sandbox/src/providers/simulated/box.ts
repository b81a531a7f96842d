import type { Duplex } from "node:stream";
import {
  type CreateSandbox,
  type DestroyReceipt,
  type ExecEndReason,
  type ExecId,
  maxLifetimeMs,
  type NetworkPolicy,
  type SandboxEvent,
  type SandboxId,
  type SandboxInfo,
  type SandboxState,
  SlipwayError,
  type StateReason,
} from "@slipway/contract";
import type { BoxChannel } from "./channel.ts";
import type { Clock } from "./clock.ts";
import type { ExecRecord } from "./exec.ts";
import type { FileStore } from "./files.ts";
import { Notifier } from "./notifier.ts";
import { endOf, nextDue, type Timing } from "./timing.ts";
import type { FileTree } from "./tree.ts";
import { Watchers } from "./watchers.ts";

/** What a sandbox has from the world it is in. */
export interface BoxHost {
  readonly clock: Clock;
  readonly providerName: string;
  emit(box: Box, event: EventBody): void;
  /** Takes a snapshot that nobody asked for. */
  checkpoint(box: Box): void;
  forget(box: Box): void;
}

type WithoutHead<E> = E extends SandboxEvent ? Omit<E, "sequence" | "at" | "sandbox"> : never;
export type EventBody = WithoutHead<SandboxEvent>;

/** One simulated sandbox: its state, its time, its files and its commands. */
export class Box implements Timing {
  readonly id: SandboxId;
  readonly request: CreateSandbox;
  readonly createdAt: number;
  readonly tree: FileTree;
  readonly watchers = new Watchers();
  network: NetworkPolicy;
  state: SandboxState = "creating";
  reason: StateReason = "requested";
  stateChangedAt: number;
  expiresAt: number;
  toldEnd: number | null = null;
  lastUsedAt: number;
  uses = 0;
  lastCheckpointAt: number;
  destroyed = false;
  channel: BoxChannel | null = null;
  readonly #host: BoxHost;
  readonly #woken = new Notifier();
  #execs: Map<ExecId, ExecRecord> | null = null;
  #ports: Map<number, (connection: Duplex) => void> | null = null;
  #sleptMs = 0;
  #cancelTimer: (() => void) | null = null;
  #timerAt = Number.POSITIVE_INFINITY;

  constructor(id: SandboxId, request: CreateSandbox, tree: FileTree, host: BoxHost) {
    const now = host.clock.now();
    this.id = id;
    this.request = request;
    this.network = request.network;
    this.tree = tree;
    this.createdAt = now;
    this.stateChangedAt = now;
    this.lastUsedAt = now;
    this.lastCheckpointAt = now;
    this.expiresAt = now + request.lifetimeMs;
    this.#host = host;
    host.emit(this, { type: "sandbox.state_changed", from: null, to: "creating", reason: "requested" });
  }

  get execs(): Map<ExecId, ExecRecord> {
    this.#execs ??= new Map();
    return this.#execs;
  }

  get ports(): Map<number, (connection: Duplex) => void> {
    this.#ports ??= new Map();
    return this.#ports;
  }

  get processCount(): number {
    let count = 0;
    if (this.#execs !== null) for (const exec of this.#execs.values()) count += exec.processCount;
    return count;
  }

  info(): SandboxInfo {
    const { id, request, state, reason, createdAt, stateChangedAt, expiresAt, network } = this;
    const { cpu, memoryMb, diskMb, processes, image, workdir, user, ports, tools, labels } = request;
    return {
      id,
      provider: this.#host.providerName,
      image,
      snapshot: request.snapshot ?? null,
      state,
      reason,
      createdAt,
      stateChangedAt,
      expiresAt,
      limits: { cpu, memoryMb, diskMb, processes },
      workdir,
      user,
      ports,
      tools,
      labels,
      network: { ...network, secrets: network.secrets.map(({ value: _value, ...named }) => named) },
    };
  }

  store(workdir = this.request.workdir): FileStore {
    const { tree, watchers } = this;
    const { user, diskMb } = this.request;
    return { tree, watchers, workdir, user, diskBytes: diskMb * 1024 * 1024, now: () => this.#host.clock.now() };
  }

  emit(event: EventBody): void {
    this.#host.emit(this, event);
  }

  /** A use wakes a sleeping sandbox, and keeps it awake until it is disposed. */
  use(): Disposable {
    this.wake();
    this.uses++;
    return {
      [Symbol.dispose]: () => {
        this.uses--;
        this.lastUsedAt = this.#host.clock.now();
        this.schedule();
      },
    };
  }

  async awake(signal?: AbortSignal): Promise<void> {
    while (this.state === "sleeping") await this.#woken.wait(signal);
  }

  /** How long the sandbox has been awake in all. */
  awakeMs(): number {
    const until = this.state === "sleeping" ? this.stateChangedAt : this.#host.clock.now();
    return until - this.createdAt - this.#sleptMs;
  }

  sleep(reason: StateReason): void {
    this.#requireLive();
    if (this.state === "running") this.#change("sleeping", reason);
  }

  /** Sleep does not use up the lifetime. */
  wake(): void {
    this.#requireLive();
    if (this.state !== "sleeping") return;
    const now = this.#host.clock.now();
    const sleptMs = now - this.stateChangedAt;
    this.#sleptMs += sleptMs;
    this.expiresAt = Math.min(this.expiresAt + sleptMs, this.createdAt + maxLifetimeMs);
    this.lastUsedAt = now;
    this.#change("running", "woken");
    this.#woken.notify();
  }

  stop(reason: StateReason): void {
    this.requireExisting();
    if (this.state === "stopped" || this.state === "error") return;
    this.#endProcesses("killed");
    this.#change("stopped", reason);
  }

  start(): void {
    this.requireExisting();
    if (this.state === "running") return;
    if (this.state === "sleeping") throw new SlipwayError("sandbox_wrong_state", `${this.id} sleeps; wake it.`);
    const now = this.#host.clock.now();
    if (this.expiresAt <= now) this.expiresAt = now + this.request.lifetimeMs;
    this.lastUsedAt = now;
    this.lastCheckpointAt = now;
    this.#change("running", "started");
  }

  /** Gone without a word from the provider. */
  lose(): void {
    this.#endProcesses("lost");
    this.#change("error", "provider_lost");
  }

  /** Its commands are ended for memory; the sandbox itself ends as its request says. */
  runOutOfMemory(): void {
    const kills = this.#endProcesses("out_of_memory");
    this.emit({ type: "sandbox.out_of_memory", kills });
    this.#endBy("out_of_memory");
  }

  destroy(reason: StateReason): DestroyReceipt {
    this.requireExisting();
    const processesEnded = this.#endProcesses("killed");
    this.channel?.close();
    this.destroyed = true;
    this.#cancelTimer?.();
    this.#host.forget(this);
    this.emit({ type: "sandbox.destroyed", reason });
    return {
      sandbox: this.id,
      processesEnded,
      processesGone: true,
      filesGone: true,
      destroyedAt: this.#host.clock.now(),
    };
  }

  keepAlive(forMs: number): number {
    this.requireExisting();
    const latest = this.createdAt + maxLifetimeMs;
    this.expiresAt = Math.max(this.expiresAt, Math.min(latest, this.#host.clock.now() + forMs));
    this.schedule();
    return this.expiresAt;
  }

  requireExisting(): void {
    if (this.destroyed) throw new SlipwayError("sandbox_not_found", `There is no sandbox ${this.id}.`);
  }

  /** Sets the timer for what comes next. A timer that is early enough stays: it looks again when it comes. */
  schedule(): void {
    const due = this.destroyed ? null : nextDue(this);
    if (due !== null && this.#cancelTimer !== null && this.#timerAt <= due.at) return;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    if (due === null) return;
    this.#timerAt = due.at;
    this.#cancelTimer = this.#host.clock.after(due.at - this.#host.clock.now(), () => {
      this.#cancelTimer = null;
      this.#act();
      this.schedule();
    });
  }

  #act(): void {
    const now = this.#host.clock.now();
    const due = this.destroyed ? null : nextDue(this);
    if (due === null || due.at > now) return;
    switch (due.action) {
      case "tell_end":
        this.toldEnd = endOf(this);
        this.emit({
          type: "sandbox.expiring",
          expiresAt: this.toldEnd,
          reason: this.state === "sleeping" ? "slept_out" : "expired",
        });
        break;
      case "expire":
        this.#endBy("expired");
        break;
      case "sleep_out":
        this.#host.checkpoint(this);
        this.#endBy("slept_out");
        break;
      case "check_idle":
        this.sleep("idle");
        break;
      case "checkpoint":
        this.lastCheckpointAt = now;
        this.#host.checkpoint(this);
        break;
    }
  }

  #endBy(reason: StateReason): void {
    if (this.request.onEnd === "destroy") this.destroy(reason);
    else this.stop(reason);
  }

  #requireLive(): void {
    this.requireExisting();
    if (this.state === "running" || this.state === "sleeping") return;
    const ended = this.state === "error" || (this.state === "stopped" && this.reason !== "requested");
    throw new SlipwayError(
      ended ? "sandbox_ended" : "sandbox_not_running",
      `${this.id} is ${this.state} (${this.reason}).`,
    );
  }

  #endProcesses(cause: ExecEndReason): number {
    let count = 0;
    if (this.#execs !== null) for (const exec of this.#execs.values()) count += exec.endAll(cause);
    this.#ports = null;
    return count;
  }

  #change(to: SandboxState, reason: StateReason): void {
    const from = this.state;
    this.state = to;
    this.reason = reason;
    this.stateChangedAt = this.#host.clock.now();
    this.emit({ type: "sandbox.state_changed", from, to, reason });
    this.schedule();
  }
}
