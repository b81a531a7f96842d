import { defineConfig } from "vitest/config";
import { LongestFirst } from "./scripts/lanes/longest-first.ts";

const integration = "{packages/*/src,scripts,bench,examples/demo-build}/**/*.integration.test.ts";
/** What every project has. */
const common = {
  // A busy machine may let any process wait for seconds. What hangs still fails.
  expect: { poll: { timeout: 60_000 } },
  testTimeout: 120_000,
  hookTimeout: 300_000,
  // Of the tests in one file that say they may run side by side.
  maxConcurrency: 3,
};
const setUp = "scripts/lanes/set-up.ts";

export default defineConfig({
  test: {
    maxWorkers: 2,
    globalSetup: "scripts/lanes/build-runner.ts",
    sequence: { sequencer: LongestFirst },
    coverage: {
      provider: "v8",
      include: ["packages/{engine,store,gateway,sandbox}/src/**/*.ts"],
      exclude: ["**/{testing,fixtures,conformance}/**", "**/*{-,}{fixture,testing}.ts", "**/*.{long,account}.ts"],
      // The keeper and the programs of crash tests run as processes of their own.
      autoAttachSubprocess: true,
      reportOnFailure: true,
      reporter: ["json-summary"],
      reportsDirectory: ".reports/coverage",
    },
    projects: [
      {
        test: {
          ...common,
          name: "unit",
          include: ["{packages/*/src,scripts,bench}/**/*.test.ts"],
          exclude: ["**/node_modules/**", integration],
          setupFiles: [setUp, "scripts/lanes/no-processes.ts"],
          // Modules hold no state of their own, and a process for each file would take longer than the tests.
          isolate: false,
        },
      },
      { test: { ...common, name: "integration", include: [integration], setupFiles: [setUp] } },
      // On a Modal account, by hand: `npm run test:modal`.
      {
        test: { ...common, name: "account", include: ["packages/*/src/**/*.account.ts"], setupFiles: [setUp] },
      },
      {
        test: {
          ...common,
          name: "long",
          include: ["{packages/*/src,scripts}/**/*.long.ts"],
          setupFiles: ["scripts/lanes/random-seed.ts", setUp],
        },
      },
    ],
  },
});
