import { createHash } from "node:crypto";
import { type FileInfo, newId, SlipwayError } from "@slipway/contract";
import type { Exec, TreeEntry } from "@slipway/sandbox";
import { collect } from "../objects/storage.ts";
import { parentsOf } from "../workspaces/manifest.ts";
import type { SandboxTree } from "../workspaces/sandbox-tree.ts";

type Node = Exclude<TreeEntry, { type: "file" }> | { type: "file"; path: string; mode: number; content: Buffer };

/** A sandbox's directory `/w` in memory, for tests of what moves trees: its nodes by path. */
export class MemoryTree implements SandboxTree {
  readonly nodes = new Map<string, Node>();
  /** Paths whose content has left the sandbox. */
  readonly travelled: string[] = [];
  /** False: as in an image without sha256sum. */
  canHash = true;

  put(path: string, content: string | Uint8Array, mode = 0o644): this {
    for (const parent of parentsOf(path)) {
      if (!this.nodes.has(parent)) this.nodes.set(parent, { type: "directory", path: parent, mode: 0o755 });
    }
    this.nodes.set(path, { type: "file", path, mode, content: Buffer.from(content) });
    return this;
  }

  /** Everything there is, for comparison. */
  content(): Record<string, string> {
    const lines = [...this.nodes].map(([path, node]): [string, string] => {
      if (node.type === "symlink") return [path, `-> ${node.target}`];
      return [path, `${node.mode.toString(8)} ${node.type === "file" ? node.content.toString("base64") : "directory"}`];
    });
    return Object.fromEntries(lines.sort());
  }

  readonly files = {
    stat: async (path: string) => ({ path, type: "directory" }) as FileInfo,
    mkdir: async () => {},
    list: (path: string) => this.#list(path),
    read: (path: string) => this.#read(path.slice("/w/".length)),
    download: () => this.#download(),
    remove: async (path: string) => {
      const name = path.slice("/w/".length);
      for (const key of [...this.nodes.keys()]) {
        if (key === name || key.startsWith(`${name}/`)) this.nodes.delete(key);
      }
    },
    upload: async (_path: string, entries: AsyncIterable<TreeEntry> | Iterable<TreeEntry>) => {
      let bytes = 0;
      for await (const entry of entries) {
        if (entry.type !== "file") this.nodes.set(entry.path, entry);
        else {
          const content = await bytesOf(entry.content);
          bytes += content.length;
          this.put(entry.path, content, entry.mode);
        }
      }
      return { entries: this.nodes.size, bytes };
    },
  } as Partial<SandboxTree["files"]> as SandboxTree["files"];

  /** Plays `xargs -0 sha256sum -z`. */
  readonly exec: SandboxTree["exec"] = async () => {
    if (!this.canHash) throw new SlipwayError("exec_not_started", "xargs: no such program.");
    const asked: string[] = [];
    const answer = () =>
      asked.flatMap((path) => {
        const node = this.nodes.get(path);
        if (node?.type !== "file") return [];
        return [`${createHash("sha256").update(node.content).digest("hex")} *${path}\0`];
      });
    const ended = Promise.withResolvers<void>();
    return {
      id: newId("exc"),
      async write(data) {
        asked.push(...data.toString().split("\0").slice(0, -1));
      },
      end: async () => ended.resolve(),
      async *output() {
        await ended.promise;
        yield { type: "stdout", offset: 0, data: Buffer.from(answer().join("")) };
      },
      wait: async () => ({
        reason: "exited",
        exitCode: 0,
        signal: null,
        durationMs: 0,
        stdoutBytes: 0,
        stderrBytes: 0,
      }),
      async [Symbol.asyncDispose]() {},
    } as Partial<Exec> as Exec;
  };

  async *#list(path: string): AsyncGenerator<FileInfo> {
    for (const node of this.nodes.values()) {
      const size = node.type === "file" ? node.content.length : 0;
      const [mode, symlinkTarget] = node.type === "symlink" ? [0o777, node.target] : [node.mode, null];
      yield { path: `${path}/${node.path}`, type: node.type, mode, size, modifiedAt: 0, symlinkTarget };
    }
  }

  async *#read(path: string): AsyncGenerator<Uint8Array> {
    const node = this.nodes.get(path);
    if (node?.type !== "file") throw new SlipwayError("file_not_found", `${path} is not there.`);
    this.travelled.push(path);
    yield node.content;
  }

  async *#download(): AsyncGenerator<TreeEntry> {
    for (const node of this.nodes.values()) {
      if (node.type === "file") this.travelled.push(node.path);
      yield node;
    }
  }
}

async function bytesOf(content: string | Uint8Array | AsyncIterable<Uint8Array>): Promise<Buffer> {
  const isWhole = typeof content === "string" || content instanceof Uint8Array;
  return isWhole ? Buffer.from(content) : await collect(content);
}
