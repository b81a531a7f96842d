import { buildRunner } from "@slipway/runner/build";

/** Bundles the runner before the tests: unit tests that need the bundle start no process. */
export async function setup(): Promise<void> {
  await buildRunner();
}
