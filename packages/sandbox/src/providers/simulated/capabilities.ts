import type { Capabilities } from "../../provider.ts";

export const simulatedCapabilities: Capabilities = {
  pty: false,
  ptyResize: false,
  execSurvivesCaller: true,
  watch: true,
  sleep: true,
  stopStart: true,
  snapshotWhileRunning: true,
  egressAllowlist: true,
  egressSecrets: true,
  previewUrls: false,
  customImages: false,
  gpu: false,
  hostChannel: true,
  tools: false,
  realPrograms: false,
};
