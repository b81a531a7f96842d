import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    // `*.long.ts` are proofs that take many minutes each: `npm run test:long`.
    include: process.env["SLIPWAY_LONG"]
      ? ["packages/*/src/**/*.long.ts", "scripts/*.long.ts"]
      : ["packages/*/src/**/*.test.ts", "scripts/**/*.test.ts", "bench/**/*.test.ts"],
    maxWorkers: 2,
    // Of the tests in one file that say they may run side by side.
    maxConcurrency: 3,
    setupFiles: ["scripts/test-setup.ts"],
    // A busy machine may let any process wait for seconds. What hangs still fails.
    expect: { poll: { timeout: 60_000 } },
    testTimeout: 120_000,
    hookTimeout: 300_000,
  },
});
