/** The settings of a keeper's start. */
export interface KeeperSettings {
  readonly stateDir: string;
  /** The uid of sandboxes when the keeper is root; otherwise they have its own. */
  readonly sandboxUid: number;
  /** What sandboxes leave free of the state directory's disk. */
  readonly minFreeBytes: number;
  /** The keeper's environment: names the host's registries, and where npm and pip are. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}
