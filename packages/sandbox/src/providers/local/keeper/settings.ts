/** What a keeper is started with. */
export interface KeeperSettings {
  readonly stateDir: string;
  /** The uid that sandboxes run as when the keeper is root; otherwise they run as its own. */
  readonly sandboxUid: number;
  /** What sandboxes leave free of the state directory's disk. */
  readonly minFreeBytes: number;
  /** Of the keeper's process: it names the host's registries, and where npm and pip are. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}
