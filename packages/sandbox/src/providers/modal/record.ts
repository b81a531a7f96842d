import type * as kept from "../../keeper/record.ts";

export interface SandboxRecord extends kept.SandboxRecord, Origin {
  /** Of this sandbox's link, over all its starts: whoever has it controls the sandbox. Hexadecimal. */
  readonly key: string;
  /** What its image sets for every command. */
  readonly environment: Readonly<Record<string, string>>;
  /** Null while nothing of it runs. */
  readonly run: Run | null;
}

/** One sandbox at Modal. Each start of ours is another one there. */
export interface Run {
  /** Chosen before it is asked for, so that one whose answer is lost is found. */
  readonly name: string;
  /** Modal's id; null until it has answered. */
  readonly sandboxId: string | null;
  readonly askedAt: number;
  /** By Modal's books, which its bill goes by. Null until it has answered. */
  readonly startedAt: number | null;
  readonly link: Address | null;
  /** The tunnels of the open ports. */
  readonly previews: Readonly<Record<string, Address>>;
}

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** Where a sandbox's files come from. */
export interface Origin {
  /** Modal's id. */
  readonly imageId: string;
  /** What of ours is in it, by digest: see `image/store.ts`. */
  readonly store: readonly string[];
}
