import { type Finding, fail } from "./finding.ts";
import type { InspectOptions } from "./local/doctor/doctor.ts";
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
  return await (await import("./modal/doctor/inspect.ts")).inspectModal(modal, { signal });
}
