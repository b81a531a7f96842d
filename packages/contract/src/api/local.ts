/** Where the server of a machine and its faces meet: there is one server per state directory. */
export const serverFiles = {
  socket: "server.sock",
  log: "server.log",
  lock: "server.lock",
  settings: "server.settings",
} as const;

export interface UserOfHost {
  readonly isRoot: boolean;
  readonly home: string;
  /** As XDG_DATA_HOME says. */
  readonly dataHome: string | undefined;
}

/** Without a setting that says otherwise. */
export function defaultStateDirectory({ isRoot, home, dataHome }: UserOfHost): string {
  return isRoot ? "/var/lib/slipway" : `${dataHome || `${home}/.local/share`}/slipway`;
}
