import { settingsError } from "@slipway/contract";
import type { SandboxProvider } from "../provider.ts";
import type { LocalProviderOptions } from "./local/index.ts";
import type { ModalSettings } from "./modal-settings.ts";
import type { ProviderName } from "./settings.ts";

/** As `readSandboxSettings` reads them, and where the provider keeps its state. */
export interface ProviderSettings extends LocalProviderOptions {
  /** Local when left out. */
  readonly provider?: ProviderName | undefined;
  /** Needed for modal. */
  readonly modal?: ModalSettings | undefined;
}

/** Loads and opens a provider by its settings. */
export async function openProvider(settings: ProviderSettings): Promise<SandboxProvider> {
  const { provider = "local", modal, ...options } = settings;
  if (provider === "modal") {
    if (modal === undefined) throw settingsError(["SANDBOX_PROVIDER is modal, and Modal's credentials are not set."]);
    const { createModalProvider } = await import("./modal/index.ts");
    return createModalProvider({ ...options, modal });
  }
  const { createLocalProvider } = await import("./local/index.ts");
  return createLocalProvider(options);
}
