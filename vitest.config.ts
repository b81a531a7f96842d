import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Each takes half a minute or more: begun last, one would keep all others waiting for it alone. */
const slowest = [
  "server/src/demo-crash",
  "sandbox/src/providers/local/keeper/image-debian",
  "server/src/crash",
  "server/src/modes",
  "server/src/hostile-build",
  "server/src/attempts/attempts",
  "server/src/long-build",
  "server/src/claude-build",
  "server/src/whole-build",
  "server/src/gates/intent",
  "server/src/gates/hostile",
  "sandbox/src/providers/local/crash",
  "runner/src/agents/acp/real",
  "runner/src/host/faults",
  "sandbox/src/providers/local/keeper/images",
  "runner/src/host/steering",
  "runner/src/host/restart",
  "runner/src/channel/kills",
  "runner/src/host/key",
  "sandbox/src/providers/local/local",
  "sandbox/src/providers/local/hundred",
  "sandbox/src/providers/local/project",
  "cli/src/commands/agent-run",
  "cli/src/commands/agent-run-agents",
  "store/src/postgres",
  "store/src/sqlite",
  "cli/src/local",
  "store/src/turso",
  "runner/src/host/hostile",
  "store/src/bridge/open",
  "store/src/bridge/sql/postgres",
  "runner/src/agents/claude-code/driver",
].map((name) => `/packages/${name}.test.ts`);

class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const index = slowest.findIndex((name) => moduleId.endsWith(name));
      return index === -1 ? slowest.length : index;
    };
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}

export default defineConfig({
  test: {
    // `*.long.ts` are proofs that take many minutes each: `npm run test:long`.
    include: process.env["SLIPWAY_LONG"]
      ? ["packages/*/src/**/*.long.ts", "scripts/*.long.ts"]
      : ["packages/*/src/**/*.test.ts", "scripts/**/*.test.ts", "bench/**/*.test.ts"],
    sequence: { sequencer: SlowestFirst },
    maxWorkers: 3,
    // Of the tests in one file that say they may run side by side.
    maxConcurrency: 3,
    setupFiles: ["scripts/test-setup.ts"],
    // A busy machine may let any process wait for seconds. What hangs still fails.
    expect: { poll: { timeout: 60_000 } },
    testTimeout: 120_000,
    hookTimeout: 300_000,
  },
});
