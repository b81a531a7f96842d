import { settingsError } from "@slipway/contract";
import type { SandboxProvider } from "../provider.ts";
import type { LocalProviderOptions } from "./local/index.ts";

/** Names that SANDBOX_PROVIDER takes. */
export const providerNames = ["local"] as const;
export type ProviderName = (typeof providerNames)[number];
const plannedNames: readonly string[] = ["docker", "modal"];

export interface ProviderSettings extends LocalProviderOptions {
  /** The value of SANDBOX_PROVIDER; local when left out. */
  readonly provider?: string | undefined;
}

/** Loads and opens a provider by its settings. An unknown name is `invalid_settings`. */
export async function openProvider(settings: ProviderSettings): Promise<SandboxProvider> {
  const mistake = providerMistake(settings.provider ?? "local");
  if (mistake !== undefined) throw settingsError([mistake]);
  const { createLocalProvider } = await import("./local/index.ts");
  return createLocalProvider(settings);
}

/** What is wrong with a value of SANDBOX_PROVIDER; undefined when nothing is. */
export function providerMistake(name: string): string | undefined {
  if ((providerNames as readonly string[]).includes(name)) return undefined;
  const available = `available: ${providerNames.join(", ")}`;
  return plannedNames.includes(name)
    ? `SANDBOX_PROVIDER: this version has no ${name} provider (${available}).`
    : `SANDBOX_PROVIDER: "${name}" is not a provider (${available}).`;
}
