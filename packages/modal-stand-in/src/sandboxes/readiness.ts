import { setTimeout as delay } from "node:timers/promises";
import { run } from "@slipway/sandbox";
import { refusal } from "../refuse.ts";
import type { ReadinessProbe } from "../wire.ts";
import type { Sandbox } from "./sandbox.ts";

const usualIntervalMs = 100;

/** Resolves when the sandbox's probe succeeds: its port takes a connection, or its command ends with 0. */
export async function waitUntilReady(sandbox: Sandbox, timeoutMs: number, signal: AbortSignal): Promise<void> {
  const probe = sandbox.definition.readinessProbe;
  if (probe === undefined) throw refusal("FAILED_PRECONDITION", "The sandbox has no readiness probe.");
  const untilMs = performance.now() + timeoutMs;
  while (!signal.aborted && performance.now() < untilMs) {
    if (sandbox.result !== undefined) throw refusal("FAILED_PRECONDITION", "The sandbox has finished.");
    if (await isReady(sandbox, probe)) return;
    await delay(probe.intervalMs ?? usualIntervalMs);
  }
  throw refusal("DEADLINE_EXCEEDED", "The sandbox did not become ready in time.");
}

async function isReady({ box, workdir }: Sandbox, { tcpPort, execCommand }: ReadinessProbe): Promise<boolean> {
  try {
    if (tcpPort === undefined) return (await run(box, execCommand?.argv ?? [], { cwd: workdir })).exitCode === 0;
    (await box.connect(tcpPort)).destroy();
    return true;
  } catch {
    return false;
  }
}
