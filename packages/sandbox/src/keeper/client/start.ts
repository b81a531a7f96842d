import type { KeeperLayout } from "../layout.ts";

/** How to start a provider's keeper. */
export interface KeeperStarter {
  readonly layout: KeeperLayout;
  /** The program of its process, and the words of its command line, which everyone on the machine can read. */
  readonly main: string;
  readonly words: readonly string[];
  /** Its environment: may hold keys. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Creates what the keeper's directory lacks. Fails with `invalid_settings` when it cannot be used. */
  prepare(): void;
}
