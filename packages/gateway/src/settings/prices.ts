import { readFileSync } from "node:fs";
import { type ComputePrices, computePricesSchema, SlipwayError, type Usage } from "@slipway/contract";
import { z } from "zod";

/** US dollars per million tokens, which is the same number as micro-USD per token. */
const price = z.number().min(0).max(100_000);
const modelPriceSchema = z.strictObject({
  input: price,
  output: price,
  cacheRead: price,
  cacheWrite: price,
  maxOutputTokens: z.int().min(1).max(10_000_000),
  /** Whether the model bills thoughts that it does not stream: unless told not to, only on request, or never. */
  hiddenThinking: z.enum(["usual", "asked", "never"]).default("usual"),
});
export type ModelPrice = z.output<typeof modelPriceSchema>;

/** Keys are `provider/model`, or `provider/*` for every other model of that provider. */
const priceTableSchema = z.strictObject({
  /** When the prices were looked up. */
  date: z.iso.date(),
  models: z.record(z.string().regex(/^[a-z0-9-]+\/.+$/, "expected provider/model"), modelPriceSchema).default({}),
  compute: computePricesSchema.default({}),
});
export type PriceTable = ReadonlyMap<string, ModelPrice>;

export interface Prices {
  readonly models: PriceTable;
  /** Of sandboxes, by their provider. */
  readonly compute: ComputePrices;
}

/** The built-in table, overridden by the models and the providers of sandboxes of the given file. */
export function readPrices(overridesPath?: string): Prices {
  const shipped = parsePrices(readFileSync(new URL("prices.json", import.meta.url), "utf8"), "prices.json");
  const own = overridesPath === undefined ? undefined : parsePrices(readOverrides(overridesPath), overridesPath);
  return {
    models: new Map(Object.entries({ ...shipped.models, ...own?.models })),
    compute: { ...shipped.compute, ...own?.compute },
  };
}

export function findPrice(prices: PriceTable, provider: string, model: string): ModelPrice {
  const found = prices.get(`${provider}/${model}`) ?? prices.get(`${provider}/*`);
  if (found !== undefined) return found;
  const known = [...prices.keys()].filter((name) => name.startsWith(`${provider}/`));
  const others = known.length === 0 ? "" : `; known are ${known.join(", ")}`;
  throw new SlipwayError("unknown_price", `the model ${provider}/${model} is not known here, nor its price${others}`);
}

/** Whole micro-USD, rounded up. */
export function costOf(usage: Usage, modelPrice: ModelPrice): number {
  const exact =
    usage.input * modelPrice.input +
    usage.output * modelPrice.output +
    usage.cacheRead * modelPrice.cacheRead +
    usage.cacheWrite * modelPrice.cacheWrite;
  // Prices such as 0.1 are inexact in binary: do not round up for that error alone.
  return Math.max(0, Math.ceil(exact - 1e-6));
}

function readOverrides(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new SlipwayError("invalid_settings", `cannot read ${path}: ${(error as Error).message}`, { cause: error });
  }
}

function parsePrices(text: string, name: string): z.output<typeof priceTableSchema> {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new SlipwayError("invalid_settings", `${name} is not JSON: ${(error as Error).message}`, { cause: error });
  }
  const parsed = priceTableSchema.safeParse(json);
  if (parsed.success) return parsed.data;
  const mistakes = parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`);
  throw new SlipwayError("invalid_settings", `${name} is not a price table: ${mistakes.join("; ")}`);
}
