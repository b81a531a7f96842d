import type { FileChange } from "@slipway/contract";
import { Notifier } from "./notifier.ts";
import { pathOf } from "./tree.ts";

interface Watcher {
  readonly path: string;
  readonly recursive: boolean;
  readonly changes: FileChange[];
  readonly changed: Notifier;
}

/** Who watches a sandbox's files. By path, so a file that is replaced is still watched. */
export class Watchers {
  #watchers: Set<Watcher> | null = null;

  tell(type: FileChange["type"], names: readonly string[]): void {
    if (this.#watchers === null) return;
    const path = pathOf(names);
    for (const watcher of this.#watchers) {
      if (!covers(watcher, path)) continue;
      watcher.changes.push({ type, path });
      watcher.changed.notify();
    }
  }

  /** Changes from now on, until the signal. */
  async *watch(
    names: readonly string[],
    recursive: boolean,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<FileChange> {
    this.#watchers ??= new Set();
    const watchers = this.#watchers;
    const watcher: Watcher = { path: pathOf(names), recursive, changes: [], changed: new Notifier() };
    watchers.add(watcher);
    try {
      for (;;) {
        for (let change = watcher.changes.shift(); change !== undefined; change = watcher.changes.shift()) yield change;
        await watcher.changed.wait(signal);
      }
    } finally {
      watchers.delete(watcher);
    }
  }
}

function covers({ path, recursive }: Watcher, changed: string): boolean {
  if (changed === path) return true;
  const below = path === "/" ? "/" : `${path}/`;
  return changed.startsWith(below) && (recursive || !changed.slice(below.length).includes("/"));
}
