// `npm run test:modal`: the conformance suite and a deploy on the Modal account of the environment. It costs money, so nothing
// else runs it. docs/guides/deploy-on-modal.md has the checklist. Arguments go to Vitest.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { microUsdPerUsd } from "@slipway/contract";
import { readGatewaySettings } from "@slipway/gateway";
import { deployCeiling, sandboxCost } from "@slipway/sandbox/deploy";
import { readSandboxSettings } from "@slipway/sandbox/settings";

/** The suite's sandboxes, and how long they run together at most. */
const suite = { limits: { cpu: 1, memoryMb: 512 }, sandboxMs: 4 * 60 * 60_000 };
const root = fileURLToPath(new URL("..", import.meta.url));

const { settings, mistakes } = readSandboxSettings({ ...process.env, SANDBOX_PROVIDER: "modal" });
const { modal } = settings;
if (mistakes.length > 0 || modal === undefined) {
  console.error("Refused: this runs on a Modal account, and costs money there.");
  for (const mistake of mistakes) console.error(`- ${mistake}`);
  console.error("docs/guides/deploy-on-modal.md says what to set, what is made, and what it costs.");
  process.exit(2);
}

const price = readGatewaySettings(process.env).computePrices["modal"];
const ceiling = price && deployCeiling(price) + sandboxCost(price, suite.limits, suite.sandboxMs);
const cost = ceiling === undefined ? "an unknown price" : `${(ceiling / microUsdPerUsd).toFixed(2)} USD`;
console.log(`Account at ${modal.apiBase}, app ${modal.app}: at most ${cost}.`);
const argv = ["node_modules/vitest/vitest.mjs", "run", "--project=account", "--maxWorkers=1", ...process.argv.slice(2)];
const { status } = spawnSync(process.execPath, argv, { cwd: root, stdio: "inherit" });
process.exitCode = status ?? 1;
