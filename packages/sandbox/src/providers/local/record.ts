import type * as kept from "../../keeper/record.ts";

/** A read-only file tree below a sandbox's own. The name of its directory in `layers`. */
export type LayerId = string;

export interface SandboxRecord extends kept.SandboxRecord {
  readonly image: RootImage;
  /** Everything below the upper, topmost first; the image's own layers are the last ones. */
  readonly lowers: readonly LayerId[];
  readonly process: { readonly pid: number; readonly startTime: string } | null;
  readonly cgroups: readonly string[];
  /** The layer that the next live snapshot is compared with. */
  readonly incremental: LayerId | null;
  readonly previews: Readonly<Record<string, { readonly hostPort: number; readonly token: string }>>;
}

/** A resolved image: its layers, and whether the host's /usr is part of it. */
export interface RootImage {
  readonly kind: "host" | "rootfs";
  readonly layers: readonly LayerId[];
}

/** Where a sandbox's files come from. */
export interface Origin {
  readonly root: RootImage;
  readonly lowers: readonly LayerId[];
}
