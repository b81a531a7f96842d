import { type FileInfo, SlipwayError } from "@slipway/contract";

export interface FileNode {
  readonly type: "file";
  readonly data: Uint8Array;
  readonly mode: number;
  readonly modifiedAt: number;
}

interface LinkNode {
  readonly type: "symlink";
  readonly target: string;
  readonly mode: number;
  readonly modifiedAt: number;
}

export interface DirectoryNode {
  readonly type: "directory";
  /** Changed in place only by the tree that owns the node. */
  readonly entries: Map<string, Node>;
  readonly mode: number;
  readonly modifiedAt: number;
  readonly owner: Owner;
}

export type Node = FileNode | LinkNode | DirectoryNode;

/** Marks the nodes that one tree alone holds. */
type Owner = object;

/** Where a path leads after its links: the names from the root, and what is there. */
export interface Place {
  readonly names: readonly string[];
  readonly node: Node | undefined;
}

const mostLinks = 40;

/**
 * A file tree that is shared until it is changed: a fork costs nothing, and a change copies the directories on its
 * way. Both sides of a fork give up the ownership of all nodes, so neither changes what the other sees.
 */
export class FileTree {
  #root: DirectoryNode;
  #owner: Owner = {};
  #bytes: number;
  #bytesSinceFork = 0;

  private constructor(root: DirectoryNode, bytes: number) {
    this.#root = root;
    this.#bytes = bytes;
  }

  static empty(): FileTree {
    return new FileTree({ type: "directory", entries: new Map(), mode: 0o755, modifiedAt: 0, owner: {} }, 0);
  }

  fork(): FileTree {
    this.#owner = {};
    this.#bytesSinceFork = 0;
    return new FileTree(this.#root, this.#bytes);
  }

  /** Content of all files. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Content that was written since the tree was last shared. */
  get bytesSinceFork(): number {
    return this.#bytesSinceFork;
  }

  /** Follows the links on the way, and a last one when told. A link leads from this tree's root, never out of it. */
  locate(path: string, follow: boolean): Place {
    const rest = split(path);
    let nodes: (Node | undefined)[] = [this.#root];
    let names: string[] = [];
    let links = 0;
    for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
      if (name === "..") {
        names.pop();
        if (nodes.length > 1) nodes.pop();
        continue;
      }
      const child = childOf(nodes.at(-1), name);
      if (child?.type === "symlink" && (follow || rest.length > 0)) {
        if (++links > mostLinks) throw new SlipwayError("file_not_found", `${path} has too many links.`);
        if (child.target.startsWith("/")) [nodes, names] = [[this.#root], []];
        rest.unshift(...split(child.target));
        continue;
      }
      names.push(name);
      nodes.push(child);
    }
    return { names, node: nodes.at(-1) };
  }

  put(names: readonly string[], node: Node, now: number): void {
    const [directory, name] = this.#ownParent(names, now);
    const bytes = bytesOf(node);
    this.#bytes += bytes - bytesOf(directory.entries.get(name));
    this.#bytesSinceFork += bytes;
    directory.entries.set(name, node);
  }

  remove(names: readonly string[], now: number): void {
    const [directory, name] = this.#ownParent(names, now);
    this.#bytes -= bytesOf(directory.entries.get(name));
    directory.entries.delete(name);
  }

  makeDirectory(names: readonly string[], mode: number, now: number): void {
    this.put(names, { type: "directory", entries: new Map(), mode, modifiedAt: now, owner: this.#owner }, now);
  }

  #ownParent(names: readonly string[], now: number): [DirectoryNode, string] {
    const name = names.at(-1);
    if (name === undefined) throw new SlipwayError("file_forbidden", "The root directory stays as it is.");
    this.#root = this.#own(this.#root);
    let directory = this.#root;
    for (const step of names.slice(0, -1)) {
      const child = directory.entries.get(step);
      if (child !== undefined && child.type !== "directory")
        throw new SlipwayError("not_a_directory", `${step} is not a directory.`);
      const next = child === undefined ? this.#newDirectory(now) : this.#own(child);
      directory.entries.set(step, next);
      directory = next;
    }
    return [directory, name];
  }

  #own(node: DirectoryNode): DirectoryNode {
    return node.owner === this.#owner ? node : { ...node, entries: new Map(node.entries), owner: this.#owner };
  }

  #newDirectory(now: number): DirectoryNode {
    return { type: "directory", entries: new Map(), mode: 0o755, modifiedAt: now, owner: this.#owner };
  }
}

export function pathOf(names: readonly string[]): string {
  return `/${names.join("/")}`;
}

export function fileInfo(path: string, node: Node): FileInfo {
  return {
    path,
    type: node.type,
    size: node.type === "file" ? node.data.length : node.type === "symlink" ? node.target.length : 0,
    mode: node.mode,
    modifiedAt: node.modifiedAt,
    symlinkTarget: node.type === "symlink" ? node.target : null,
  };
}

/** Everything below a directory, a directory before what is in it; links are not followed. */
export function* walk(
  directory: DirectoryNode,
  above: readonly string[] = [],
): Generator<{ names: readonly string[]; node: Node }> {
  for (const [name, node] of [...directory.entries].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const names = [...above, name];
    yield { names, node };
    if (node.type === "directory") yield* walk(node, names);
  }
}

function childOf(node: Node | undefined, name: string): Node | undefined {
  if (node === undefined) return undefined;
  if (node.type !== "directory")
    throw new SlipwayError("not_a_directory", `The path to ${name} leads through a ${node.type}.`);
  return node.entries.get(name);
}

function bytesOf(node: Node | undefined): number {
  if (node === undefined || node.type === "symlink") return 0;
  if (node.type === "file") return node.data.length;
  let bytes = 0;
  for (const child of node.entries.values()) bytes += bytesOf(child);
  return bytes;
}

function split(path: string): string[] {
  return path.split("/").filter((name) => name !== "" && name !== ".");
}
