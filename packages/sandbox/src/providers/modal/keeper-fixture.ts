import type { Clock } from "../../keeper/clock.ts";
import { readSandboxSettings } from "../settings.ts";
import { startKeeper } from "./keeper/compose.ts";
import { keeperEnvironment, readKeeperSettings } from "./keeper/settings.ts";
import { layoutOf } from "./layout.ts";

/** The keeper of a state directory in this process, so that a test moves its clock. It says nothing when it is closed. */
export async function startKeeperHere(
  stateDir: string,
  environment: Readonly<Record<string, string>>,
  clock: Clock,
  log: (line: string) => void,
): Promise<AsyncDisposable> {
  const { modal } = readSandboxSettings(environment).settings;
  if (modal === undefined) throw new Error("The environment names no account at Modal.");
  const { workspace: _workspace, regions, ...rest } = modal;
  const variables = keeperEnvironment({ ...rest, regions: [...regions] }, process.env);
  // The SDK takes its server from the environment.
  Object.assign(process.env, { MODAL_SERVER_URL: modal.apiBase, MODAL_CONFIG_PATH: "/dev/null" });
  const keeper = await startKeeper(layoutOf(stateDir), readKeeperSettings(variables), clock, log);
  return {
    async [Symbol.asyncDispose]() {
      keeper.close();
      await keeper.closed;
    },
  };
}
