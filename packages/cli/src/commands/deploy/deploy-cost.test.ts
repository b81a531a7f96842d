import { readFileSync } from "node:fs";
import { microUsdPerUsd } from "@slipway/contract";
import { deployCeiling, sandboxCost } from "@slipway/sandbox/deploy";
import { expect, test } from "vitest";
import { modalPrice } from "./modal-price.ts";

const guide = readFileSync(new URL("../../../../../docs/guides/deploy-on-modal.md", import.meta.url), "utf8");
const hourMs = 3_600_000;

test("the guide has the figures that the price table gives", () => {
  const price = modalPrice({});
  const usd = (microUsd: number) => (microUsd / microUsdPerUsd).toFixed(2);
  const hours = (count: number) => sandboxCost(price, { cpu: 2, memoryMb: 4096 }, count * hourMs);
  const tests = deployCeiling(price) + sandboxCost(price, { cpu: 1, memoryMb: 512 }, 4 * hourMs);
  const figures = [...guide.matchAll(/^\|.*\| (\d+\.\d\d) \|$/gm)].map(([, figure]) => figure);
  expect(figures).toEqual([usd(hours(1)), usd(hours(14)), usd(deployCeiling(price)), usd(tests)]);
  expect(Number(figures.at(-1))).toBeLessThan(1);
});
