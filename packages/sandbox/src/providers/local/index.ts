import { fileURLToPath } from "node:url";
import { dialAgent } from "../../agent/connection.ts";
import { logsIn } from "../../agent/exec/logs.ts";
import type { KeeperStarter } from "../../keeper/client/start.ts";
import { createHostChannels } from "../../keeper/handles/channels.ts";
import { createKeptProvider } from "../../keeper/handles/provider.ts";
import type { Capabilities, SandboxProvider } from "../../provider.ts";
import { sandboxUid as defaultSandboxUid, toolsInside } from "./launch/launch.ts";
import { baseEnvironment } from "./launch/skeleton.ts";
import { defaultMinFreeMb, layoutOf, prepareStateDirectory } from "./layout.ts";
import { watchOomKills } from "./out-of-memory.ts";
import { listenIn } from "./ports/channel.ts";
import type { SandboxRecord } from "./record.ts";

export interface LocalProviderOptions {
  /** Absolute. Holds all of the provider's state; one keeper serves it. */
  readonly stateDir: string;
  /** The uid of sandboxes on the host when this runs as root. */
  readonly sandboxUid?: number | undefined;
  /** What sandboxes leave free of the state directory's disk. Whoever starts the keeper sets it. */
  readonly minFreeMb?: number | undefined;
  /** Environment of host programs such as npm. None of it enters a sandbox. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /**
   * Directories of this machine, by the names in a create's `tools`. The sandbox gets a copy at `/opt/<name>`, without
   * links that lead out of the directory.
   */
  readonly tools?: Readonly<Record<string, string>> | undefined;
}

export const localCapabilities: Capabilities = {
  pty: true,
  ptyResize: true,
  execSurvivesCaller: true,
  watch: true,
  sleep: true,
  sleepKeepsProcesses: true,
  stopStart: true,
  logsWhileStopped: true,
  snapshotWhileRunning: true,
  egressAllowlist: true,
  egressSecrets: true,
  egressForwards: true,
  egressPorts: true,
  egressRefusals: true,
  previewUrls: true,
  customImages: true,
  gpu: false,
  diskLimit: true,
  rootUser: true,
  hostChannel: true,
  tools: true,
};

/** Sandboxes on this machine: bubblewrap, an overlay file system, and a keeper that outlives its callers. */
export function createLocalProvider(options: LocalProviderOptions): SandboxProvider {
  const layout = layoutOf(options.stateDir);
  return createKeptProvider<SandboxRecord>({
    name: "local",
    capabilities: localCapabilities,
    starter: keeperStarter(options),
    tools: options.tools ?? {},
    reach(keeper, records) {
      const channels = createHostChannels({
        keeper,
        exists: records.exists,
        openIn: (id) => listenIn(layout.box(id), id),
      });
      return {
        toolsDirectory: toolsInside,
        environment: ({ request }) => baseEnvironment(request.user),
        dial: (id) => dialAgent(layout.box(id).agentSocket),
        logs: (id) => logsIn(layout.box(id).execs),
        watchExecs: (current) => watchOomKills(async () => (await current()).cgroups),
        openChannel: (id) => channels.open(id),
        [Symbol.asyncDispose]: () => channels[Symbol.asyncDispose](),
      };
    },
  });
}

function keeperStarter(options: LocalProviderOptions): KeeperStarter {
  const layout = layoutOf(options.stateDir);
  const sandboxUid = options.sandboxUid ?? defaultSandboxUid;
  const minFreeBytes = (options.minFreeMb ?? defaultMinFreeMb) * 1024 * 1024;
  return {
    layout,
    main: fileURLToPath(new URL("keeper/main.ts", import.meta.url)),
    words: [options.stateDir, String(sandboxUid), String(minFreeBytes)],
    environment: options.environment ?? {},
    prepare: () => prepareStateDirectory(layout, sandboxUid),
  };
}
