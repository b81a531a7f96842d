/** What a keeper is started with, as its one argument. */
export interface KeeperSettings {
  readonly stateDir: string;
  /** The uid that sandboxes run as when the keeper is root; otherwise they run as its own. */
  readonly sandboxUid: number;
  /** The environment that programs of the host (npm, debootstrap) run with. */
  readonly environment: Readonly<Record<string, string>>;
}
