import { fileURLToPath } from "node:url";
import { createKeptProvider } from "../../keeper/handles/provider.ts";
import type { Capabilities, SandboxProvider } from "../../provider.ts";
import type { ModalSettings } from "../modal-settings.ts";
import { keeperEnvironment } from "./keeper/settings.ts";
import { layoutOf, prepareStateDirectory } from "./layout.ts";
import { reachModal } from "./reach.ts";
import type { SandboxRecord } from "./record.ts";

export interface ModalProviderOptions {
  /** Absolute. The provider keeps to a directory of its own in it, which one keeper serves. */
  readonly stateDir: string;
  readonly modal: ModalSettings;
  /** Names proxies and authorities, for the keeper. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** Directories of this machine, by the names in a create's `tools`. They become part of an image. */
  readonly tools?: Readonly<Record<string, string>> | undefined;
}

/** docs/modal.md says what each `false` means. */
export const modalCapabilities: Capabilities = {
  pty: true,
  ptyResize: true,
  execSurvivesCaller: true,
  watch: true,
  sleep: true,
  sleepKeepsProcesses: false,
  stopStart: true,
  logsWhileStopped: false,
  snapshotWhileRunning: true,
  egressAllowlist: true,
  egressSecrets: false,
  egressForwards: false,
  egressPorts: false,
  egressRefusals: false,
  previewUrls: true,
  customImages: true,
  gpu: true,
  diskLimit: false,
  rootUser: false,
  hostChannel: true,
  tools: true,
};

/** Sandboxes at Modal, each with our agent inside, and a keeper on this machine that outlives its callers. */
export function createModalProvider({
  stateDir,
  modal,
  environment = {},
  tools = {},
}: ModalProviderOptions): SandboxProvider {
  const layout = layoutOf(stateDir);
  const { workspace: _workspace, regions, ...rest } = modal;
  return createKeptProvider<SandboxRecord>({
    name: "modal",
    capabilities: modalCapabilities,
    starter: {
      layout,
      main: fileURLToPath(new URL("keeper/main.ts", import.meta.url)),
      words: [stateDir],
      environment: keeperEnvironment({ ...rest, regions: [...regions] }, environment),
      prepare: () => prepareStateDirectory(layout),
    },
    tools,
    reach: (keeper, records) => reachModal(keeper, records, modal.tunnelCa),
  });
}
