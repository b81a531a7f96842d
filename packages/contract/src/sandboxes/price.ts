import { z } from "zod";

const usd = z.number().min(0).max(1000);

/** A GPU by its provider's name, with how many of them: `H100`, `A100-80GB:2`. */
export const gpuSchema = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9-]{0,39}(:[1-8])?$/, "expected the name of a GPU, such as T4 or H100:2");

/** What a provider asks for a running sandbox, in US dollars per second, as providers publish it. */
export const computePriceSchema = z.strictObject({
  core: usd,
  /** How many of our `cpu`, which are hardware threads (vCPU), make one of the cores that `core` is the price of. */
  cpusPerCore: z.number().min(0.1).max(64).default(1),
  memoryGib: usd,
  /** By name. A GPU without a price cannot be used. */
  gpus: z.record(z.string().regex(/^[A-Za-z0-9][A-Za-z0-9-]{0,39}$/, "expected the name of a GPU"), usd).default({}),
  /** For a month of 30 days. */
  snapshotGibMonth: usd.default(0),
});
export type ComputePrice = Readonly<z.output<typeof computePriceSchema>>;

/** By the provider's name. A provider that is free has prices of 0, and one without prices is refused. */
export const computePricesSchema = z.record(
  z.string().regex(/^[a-z][a-z0-9-]{0,63}$/, "expected the name of a sandbox provider"),
  computePriceSchema,
);
export type ComputePrices = Readonly<z.output<typeof computePricesSchema>>;

export function isFree({ core, memoryGib, gpus, snapshotGibMonth }: ComputePrice): boolean {
  return [core, memoryGib, snapshotGibMonth, ...Object.values(gpus)].every((price) => price === 0);
}

/** What is asked of a provider, as far as it costs money. */
export interface Computing {
  readonly cpu: number;
  readonly memoryMb: number;
  readonly gpu?: string | null | undefined;
}

/** Micro-USD per millisecond. Undefined: its GPU has no price. */
export function computeRate(price: ComputePrice, { cpu, memoryMb, gpu }: Computing): number | undefined {
  const gpus = gpu == null ? 0 : gpuPrice(price, gpu);
  if (gpus === undefined) return undefined;
  const usdPerSecond = (cpu / price.cpusPerCore) * price.core + (memoryMb / 1024) * price.memoryGib + gpus;
  return usdPerSecond * 1000;
}

function gpuPrice({ gpus }: ComputePrice, gpu: string): number | undefined {
  const [name = "", count = "1"] = gpu.split(":");
  return Object.hasOwn(gpus, name) ? Number(count) * (gpus[name] ?? 0) : undefined;
}

/** Whole micro-USD, rounded up. */
export function computeCost(microUsdPerMs: number, ms: number): number {
  // Prices are inexact in binary: do not round up for that error alone.
  return Math.max(0, Math.ceil(microUsdPerMs * ms - 1e-6));
}

const monthMs = 30 * 24 * 3_600_000;

export function storageCost({ snapshotGibMonth }: ComputePrice, bytes: number, ms: number): number {
  return computeCost((snapshotGibMonth * 1e6 * bytes) / 1024 ** 3 / monthMs, ms);
}
