import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createRefusalLedger, type Refusal } from "./refusals.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("a refusal is reported at once, its repetitions as one count at the window's end", () => {
  const reports: Refusal[] = [];
  const ledger = createRefusalLedger((refusal) => reports.push(refusal), 1000, 20);
  for (let i = 0; i < 500; i++) ledger.add("a.example", 443, "not_allowed");
  expect(reports).toEqual([{ host: "a.example", port: 443, rule: "not_allowed", count: 1 }]);
  vi.advanceTimersByTime(1000);
  expect(reports.slice(1)).toEqual([{ host: "a.example", port: 443, rule: "not_allowed", count: 499 }]);
  ledger.add("a.example", 443, "not_allowed");
  expect(reports).toHaveLength(3);
});

test("a flood of different hosts gives a bounded number of reports and an exact count", () => {
  const reports: Refusal[] = [];
  const ledger = createRefusalLedger((refusal) => reports.push(refusal), 1000, 20);
  for (let i = 0; i < 100_000; i++) ledger.add(`h${i}.example`, 443, "not_allowed");
  ledger.flush();
  expect(reports).toHaveLength(21);
  expect(reports.at(-1)).toEqual({ host: "*", port: 0, rule: "not_allowed", count: 99_980 });
});

test("what the sandbox wrote is reported as short printable text", () => {
  const reports: Refusal[] = [];
  createRefusalLedger((refusal) => reports.push(refusal)).add(`\u001b[2J\n${"x".repeat(5000)}`, 1, "malformed");
  expect(reports[0]?.host).toMatch(/^\?\[2J\?x{248}$/);
});
