import fc from "fast-check";
import { expect, test } from "vitest";
import { computeCost, computePriceSchema, computeRate, gpuSchema, isFree, storageCost } from "./price.ts";

const modal = computePriceSchema.parse({
  core: 0.00003942,
  cpusPerCore: 2,
  memoryGib: 0.00000667,
  gpus: { H100: 0.001097 },
  snapshotGibMonth: 0.1,
});

test("an hour of two vCPU and 4 GiB costs what the price list says", () => {
  const rate = computeRate(modal, { cpu: 2, memoryMb: 4096 }) ?? 0;
  expect(computeCost(rate, 3_600_000)).toBe(237_960);
  const withGpus = computeRate(modal, { cpu: 2, memoryMb: 4096, gpu: "H100:2" }) ?? 0;
  expect(computeCost(withGpus, 3_600_000)).toBe(237_960 + 2 * 3_949_200);
});

test("a GPU without a price has no rate", () => {
  for (const gpu of ["A10", "h100", "toString"])
    expect(computeRate(modal, { cpu: 1, memoryMb: 1, gpu })).toBeUndefined();
});

test("only prices of nothing are free", () => {
  expect(isFree(modal)).toBe(false);
  expect(isFree(computePriceSchema.parse({ core: 0, memoryGib: 0 }))).toBe(true);
  expect(isFree(computePriceSchema.parse({ core: 0, memoryGib: 0, gpus: { T4: 1 } }))).toBe(false);
});

test("ten GiB for half a month cost half of ten months' prices", () => {
  expect(storageCost(modal, 10 * 1024 ** 3, 15 * 24 * 3_600_000)).toBe(500_000);
});

test.each(["H100", "A100-80GB:8", "T4:1"])("%s is the name of a GPU", (name) => {
  expect(gpuSchema.safeParse(name).success).toBe(true);
});

test.each(["", "H100:0", "H100:9", "a b", "-x", "x".repeat(41)])("%j is no name of a GPU", (name) => {
  expect(gpuSchema.safeParse(name).success).toBe(false);
});

test("costs of parts are those of the whole, and grow with time and size", () => {
  const size = fc.record({ cpu: fc.integer({ min: 1, max: 64 }), memoryMb: fc.integer({ min: 32, max: 65_536 }) });
  const ms = fc.integer({ min: 0, max: 90 * 24 * 3_600_000 });
  fc.assert(
    fc.property(size, ms, ms, (computing, one, other) => {
      const rate = computeRate(modal, computing) ?? Number.NaN;
      const [first, last] = one < other ? [one, other] : [other, one];
      expect(computeCost(rate, first)).toBeLessThanOrEqual(computeCost(rate, last));
      expect(computeRate(modal, { ...computing, cpu: computing.cpu + 1 })).toBeGreaterThan(rate);
      const exact = (computing.cpu / 2) * 39.42 + (computing.memoryMb / 1024) * 6.67;
      expect(Math.abs(computeCost(rate, last) - (exact * last) / 1000)).toBeLessThanOrEqual(1 + 1e-3);
    }),
  );
});
