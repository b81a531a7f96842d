import { findDeployment } from "../deploy/record.ts";
import { type Finding, fail, ok, warn } from "./finding.ts";
import type { InspectOptions } from "./local/doctor/doctor.ts";
import { deployTarget, type ModalSettings } from "./modal-settings.ts";
import { type ProviderName, type SandboxSettings, withoutCredentials } from "./settings.ts";

export type { Finding } from "./finding.ts";

/** What there is to inspect, and for how long. */
export interface Inspected extends Pick<SandboxSettings, "modal">, InspectOptions {
  readonly signal?: AbortSignal | undefined;
}

/** Checks whether a provider can run sandboxes, be it in use or not. Leaves nothing behind. */
export async function inspectProvider(name: ProviderName, { modal, signal, ...host }: Inspected): Promise<Finding[]> {
  if (name === "local") return await (await import("./local/doctor/doctor.ts")).inspectHost(host);
  if (modal === undefined) {
    return [fail("modal account", withoutCredentials, "Set both; docs/guides/deploy-on-modal.md says how.")];
  }
  const { inspectModal } = await import("./modal/doctor/inspect.ts");
  return [...(await inspectModal(modal, { signal })), await inspectDeployment(host.stateDir, modal)];
}

async function inspectDeployment(stateDir: string, modal: ModalSettings): Promise<Finding> {
  const record = await findDeployment(stateDir, "modal", deployTarget(modal));
  if (record !== null) return ok("modal image", `deployed on ${new Date(record.at).toISOString()}`);
  const action = "Run `slipway deploy modal`; without it, the first sandbox waits for the image to be built.";
  return warn("modal image", "not deployed from this state directory", action);
}
