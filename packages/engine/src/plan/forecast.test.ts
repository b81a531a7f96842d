import type { Task } from "@slipway/contract";
import fc from "fast-check";
import { expect, test } from "vitest";
import { task } from "../build/testing.ts";
import { forecastCompute } from "./forecast.ts";

test("a plan's compute is that of its attempts, its gates and main", () => {
  const plan = [task("setup", [], 30), task("list", ["setup"], 60), { ...task("train", ["setup"], 90), gpu: "H100" }];
  const perMinute = (gpu: string | undefined) => (gpu === undefined ? 1 : 100);
  // Attempts, three times the gates, and the way over setup and train.
  expect(forecastCompute(plan, perMinute)).toBe(30 + 60 + 90 * 100 + 3 * 10 + 120);
  expect(forecastCompute([], perMinute)).toBe(0);
  expect(forecastCompute(plan, () => 0)).toBe(0);
});

test("a forecast grows with every task, every minute and every price", () => {
  const tasks = fc
    .array(fc.integer({ min: 1, max: 480 }), { minLength: 1, maxLength: 20 })
    .map((all) =>
      all.map((minutes, index): Task => task(`t-${index}`, index % 3 === 0 ? [] : [`t-${index - 1}`], minutes)),
    );
  fc.assert(
    fc.property(tasks, fc.double({ min: 0.001, max: 10, noNaN: true }), (plan, price) => {
      const forecast = forecastCompute(plan, () => price);
      const minutes = plan.reduce((sum, { estimate }) => sum + estimate.minutes, 0);
      expect(forecast).toBeGreaterThanOrEqual(minutes * price);
      expect(forecast).toBeLessThanOrEqual((2 * minutes + 10 * plan.length) * price * (1 + 1e-9));
      expect(forecastCompute(plan.slice(0, -1), () => price)).toBeLessThan(forecast);
      expect(forecastCompute(plan, () => 2 * price)).toBeCloseTo(2 * forecast, 6);
    }),
  );
});
