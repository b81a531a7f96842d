import { randomBytes } from "node:crypto";
import { chownSync, existsSync, mkdirSync, readdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import type { LayerId } from "../../record.ts";

export const newLayerId = (): LayerId => randomBytes(8).toString("hex");

export interface Layers {
  /** The tree of a layer, which never changes. */
  tree(id: LayerId): string;
  /** Describes the files of a live snapshot, for the next snapshot to compare with. */
  manifest(id: LayerId): string;
  has(id: LayerId): boolean;
  /** Makes a layer: `fill` writes its tree to `fs` in the given directory. Held until disposed of. */
  add(fill: (directory: string) => Promise<void> | void): Promise<HeldLayer>;
  /** Moves a stopped sandbox's upper into the layer that its record already names. Repeatable after a crash. */
  adopt(id: LayerId, upper: string): void;
  /** Removes layers that are neither held nor in `used`; with `growing`, incomplete ones too. */
  collect(used: ReadonlySet<LayerId>, options?: { growing: boolean }): Promise<number>;
}

/** Dispose of it when a record names the layer. */
export interface HeldLayer extends Disposable {
  readonly id: LayerId;
}

const growingSuffix = ".new";

/** `owner` is the sandboxes' uid when the keeper is root. */
export function openLayers(
  directory: string,
  owner: number | null,
  removeTree: (path: string) => Promise<void>,
): Layers {
  const held = new Set<LayerId>();
  const own = (path: string, { recursive } = { recursive: false }) => {
    mkdirSync(path, { mode: 0o755, recursive });
    if (owner !== null) chownSync(path, owner, owner);
  };
  return {
    tree: (id) => join(directory, id, "fs"),
    manifest: (id) => join(directory, id, "manifest"),
    has: (id) => existsSync(join(directory, id)),
    async add(fill) {
      const id = newLayerId();
      // The layer gets its name when it is complete.
      const growing = join(directory, id + growingSuffix);
      own(growing);
      held.add(id);
      try {
        await fill(growing);
        renameSync(growing, join(directory, id));
      } catch (error) {
        held.delete(id);
        await removeTree(growing);
        throw error;
      }
      return { id, [Symbol.dispose]: () => held.delete(id) };
    },
    adopt(id, upper) {
      const layer = join(directory, id);
      own(layer, { recursive: true });
      if (!existsSync(join(layer, "fs"))) renameSync(upper, join(layer, "fs"));
    },
    async collect(used, { growing } = { growing: false }) {
      const garbage = readdirSync(directory).filter((name) =>
        name.endsWith(growingSuffix) ? growing : !used.has(name) && !held.has(name),
      );
      for (const name of garbage) {
        // Renamed first: a crash must not leave part of a layer under its name.
        const leaving = join(directory, name.endsWith(growingSuffix) ? name : name + growingSuffix);
        renameSync(join(directory, name), leaving);
        await removeTree(leaving);
      }
      return garbage.length;
    },
  };
}
