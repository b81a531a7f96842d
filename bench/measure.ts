import { spawn } from "node:child_process";
import { once } from "node:events";
import { performance } from "node:perf_hooks";

/** One line of a bench run. `value` is the ratio of ours to the baseline, or the figure itself. */
export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly ours: number;
  readonly baseline: number | null;
  /** Of `ours` and `baseline`, when it is not milliseconds. */
  readonly rawUnit?: string;
  readonly n: number;
  /** What the figure is held to, if to anything. */
  readonly bound: Bound;
}

export interface Bound {
  readonly atMost?: number;
  readonly atLeast?: number;
}

export type Report = (figure: Figure) => void;

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
}

/** The least value that so large a part of all does not exceed. */
export function percentile(values: readonly number[], part: number): number {
  return values.toSorted((a, b) => a - b)[Math.ceil(part * values.length) - 1] ?? Number.NaN;
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

/** A thing to measure: what `prepare` makes is not counted, nor is what `clean` does with it. */
export interface Subject<T = undefined> {
  prepare?(): Promise<T>;
  run(prepared: T): Promise<unknown>;
  clean?(prepared: T): Promise<unknown>;
}

/** Medians in milliseconds of two subjects that are measured in turn, after some rounds that do not count. */
export async function inTurn<A, B>(
  n: number,
  ours: Subject<A>,
  baseline: Subject<B>,
  warmUp = 3,
): Promise<{ ours: number; baseline: number; n: number }> {
  const times = { ours: [] as number[], baseline: [] as number[] };
  for (let round = -warmUp; round < n; round++) {
    const [mine, theirs] = [await measureOnce(ours), await measureOnce(baseline)];
    if (round < 0) continue;
    times.ours.push(mine);
    times.baseline.push(theirs);
  }
  return { ours: median(times.ours), baseline: median(times.baseline), n };
}

async function measureOnce<T>({ prepare, run, clean }: Subject<T>): Promise<number> {
  const prepared = (await prepare?.()) as T;
  const ms = await timed(() => run(prepared));
  await clean?.(prepared);
  return ms;
}

export function ratio(
  report: Report,
  name: string,
  bound: Bound,
  measured: { ours: number; baseline: number; n: number },
): void {
  report({ name, value: measured.ours / measured.baseline, unit: "ratio", ...measured, bound });
}

/** Runs a program of the host with pipes until it is closed. */
export async function runHost(program: string, args: readonly string[] = []): Promise<void> {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  child.stdout.resume();
  child.stderr.resume();
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`${program} ${args.join(" ")} ended with ${code}`);
}
