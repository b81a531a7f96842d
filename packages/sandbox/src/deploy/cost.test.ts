import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { computeMicroUsd, trialCeilingMicroUsd } from "./cost.ts";

const guide = readFileSync(new URL("../../../../docs/guides/deploy-on-modal.md", import.meta.url), "utf8");
const hourMs = 3_600_000;

test("a sandbox costs its cores and its memory for as long as it lives", () => {
  expect(computeMicroUsd({ cpu: 2, memoryMb: 4096 }, hourMs)).toBe(237_960);
  expect(computeMicroUsd({ cpu: 1, memoryMb: 512 }, 1000)).toBe(23);
  expect(computeMicroUsd({ cpu: 1, memoryMb: 512 }, 0)).toBe(0);
});

test("the guide has the figures that are computed here", () => {
  const usd = (microUsd: number) => (microUsd / 1e6).toFixed(2);
  const hour = computeMicroUsd({ cpu: 2, memoryMb: 4096 }, hourMs);
  const tests = trialCeilingMicroUsd() + computeMicroUsd({ cpu: 1, memoryMb: 512 }, 4 * hourMs);
  const figures = [...guide.matchAll(/^\|.*\| (\d+\.\d\d) \|$/gm)].map(([, figure]) => figure);
  expect(figures).toEqual([usd(hour), usd(14 * hour), usd(trialCeilingMicroUsd()), usd(tests)]);
  expect(Number(figures.at(-1))).toBeLessThan(1);
});
