import { type FileChange, type FileInfo, type SearchMatch, SlipwayError } from "@slipway/contract";
import picomatch from "picomatch";
import { holdEntry, holdPath } from "../../input.ts";
import type { Bytes, CallOptions, SandboxFiles, SearchOptions, TreeEntry } from "../../provider.ts";
import type { Operation } from "./faults.ts";
import { throwIfAborted, unlessAborted } from "./notifier.ts";
import { type DirectoryNode, type FileNode, type FileTree, fileInfo, type Place, pathOf, walk } from "./tree.ts";
import type { Watchers } from "./watchers.ts";

/** The files of a sandbox as its owner and its programs share them. */
export interface FileStore {
  readonly tree: FileTree;
  readonly workdir: string;
  readonly user: "agent" | "root";
  readonly diskBytes: number;
  readonly watchers: Watchers;
  now(): number;
}

/** How a caller comes to the files. Each operation asks first; what it is given lasts until it is disposed. */
export interface FileAccess {
  begin(
    operation: Operation,
    signal: AbortSignal | undefined,
  ): Promise<{ store: FileStore; signal: AbortSignal | undefined } & Disposable>;
}

const chunkBytes = 256 * 1024;
/** What the sandbox's user may not change. */
const protectedNames = new Set(["usr", "proc", "sys", "dev"]);

export class SimulatedFiles implements SandboxFiles {
  readonly #access: FileAccess;

  constructor(access: FileAccess) {
    this.#access = access;
  }

  async *read(
    path: string,
    options: CallOptions & { offset?: number; length?: number } = {},
  ): AsyncGenerator<Uint8Array> {
    using use = await this.#access.begin("files.read", options.signal);
    const { data } = file(locate(use.store, path, true));
    const start = range(options.offset ?? 0);
    const end = options.length === undefined ? data.length : Math.min(data.length, start + range(options.length));
    for (let at = start; at < end; at += chunkBytes) {
      throwIfAborted(use.signal);
      yield new Uint8Array(data.subarray(at, Math.min(end, at + chunkBytes)));
    }
  }

  async write(path: string, content: Bytes, options: CallOptions & { mode?: number } = {}): Promise<{ bytes: number }> {
    using use = await this.#access.begin("files.write", options.signal);
    const { store } = use;
    writable(store, locate(store, path, false));
    const data = await gather(content, store.diskBytes, use.signal);
    writeFile(store, locate(store, path, false), data, options.mode);
    return { bytes: data.length };
  }

  async stat(path: string, options: CallOptions & { followSymlink?: boolean } = {}): Promise<FileInfo> {
    using use = await this.#access.begin("files.stat", options.signal);
    const place = locate(use.store, path, options.followSymlink ?? false);
    return fileInfo(holdPath(path, use.store.workdir), existing(place));
  }

  async *list(path: string, options: CallOptions & { glob?: string } = {}): AsyncGenerator<FileInfo> {
    using use = await this.#access.begin("files.list", options.signal);
    const top = holdPath(path, use.store.workdir);
    const matches =
      options.glob === undefined ? (name: string) => !name.includes("/") : picomatch(options.glob, { dot: true });
    for (const { names, node } of walk(directory(locate(use.store, path, true)))) {
      throwIfAborted(use.signal);
      if (matches(names.join("/"))) yield fileInfo(join(top, names), node);
    }
  }

  async mkdir(path: string, options: CallOptions & { mode?: number } = {}): Promise<void> {
    using use = await this.#access.begin("files.mkdir", options.signal);
    makeDirectory(use.store, locate(use.store, path, true), options.mode);
  }

  async move(from: string, to: string, options: CallOptions & { overwrite?: boolean } = {}): Promise<void> {
    using use = await this.#access.begin("files.move", options.signal);
    const { store } = use;
    const source = locate(store, from, false);
    const target = locate(store, to, false);
    const node = existing(source);
    writable(store, source);
    writable(store, target);
    if (pathOf(target.names).startsWith(`${pathOf(source.names)}/`)) {
      throw new SlipwayError("invalid_request", "A directory can not be moved into itself.");
    }
    if (target.node !== undefined && options.overwrite !== true) throw new SlipwayError("file_exists", `${to} exists.`);
    if (target.node?.type === "directory") throw new SlipwayError("not_a_file", `${to} is a directory.`);
    if (pathOf(target.names) === pathOf(source.names)) return;
    store.tree.remove(source.names, store.now());
    store.tree.put(target.names, node, store.now());
    store.watchers.tell("removed", source.names);
    store.watchers.tell(target.node === undefined ? "created" : "modified", target.names);
  }

  async remove(path: string, options: CallOptions & { recursive?: boolean } = {}): Promise<void> {
    using use = await this.#access.begin("files.remove", options.signal);
    const { store } = use;
    const place = locate(store, path, false);
    const node = existing(place);
    writable(store, place);
    if (node.type === "directory" && node.entries.size > 0 && options.recursive !== true) {
      throw new SlipwayError("directory_not_empty", `${path} is not empty.`);
    }
    store.tree.remove(place.names, store.now());
    store.watchers.tell("removed", place.names);
  }

  async *watch(path: string, options: CallOptions & { recursive?: boolean } = {}): AsyncGenerator<FileChange> {
    using use = await this.#access.begin("files.watch", options.signal);
    const place = locate(use.store, path, true);
    existing(place);
    yield* use.store.watchers.watch(place.names, options.recursive ?? false, use.signal);
  }

  async *search(query: string, options: CallOptions & SearchOptions = {}): AsyncGenerator<SearchMatch> {
    using use = await this.#access.begin("files.search", options.signal);
    const path = options.path ?? use.store.workdir;
    const top = holdPath(path, use.store.workdir);
    const hits = options.regex === true ? expression(query) : (line: string) => line.includes(query);
    const matches = options.glob === undefined ? () => true : picomatch(options.glob, { dot: true });
    let left = options.maxMatches ?? Number.POSITIVE_INFINITY;
    for (const { names, node } of walk(directory(locate(use.store, path, true)))) {
      throwIfAborted(use.signal);
      if (node.type !== "file" || !matches(names.join("/"))) continue;
      for (const [index, text] of Buffer.from(node.data).toString().split("\n").entries()) {
        if (!hits(text)) continue;
        if (left-- <= 0) return;
        yield { path: join(top, names), line: index + 1, text };
      }
    }
  }

  async upload(
    path: string,
    entries: AsyncIterable<TreeEntry> | Iterable<TreeEntry>,
    options: CallOptions = {},
  ): Promise<{ entries: number; bytes: number }> {
    using use = await this.#access.begin("files.upload", options.signal);
    const { store } = use;
    const top = locate(store, path, true);
    makeDirectory(store, top, undefined);
    const done = { entries: 0, bytes: 0 };
    for await (const entry of entries) {
      throwIfAborted(use.signal);
      const place = below(store, top.names, holdEntry(entry.path));
      if (entry.type === "file") {
        const data = await gather(entry.content, store.diskBytes, use.signal);
        writeFile(store, place, data, entry.mode);
        done.bytes += data.length;
      } else if (entry.type === "directory") makeDirectory(store, place, entry.mode);
      else makeLink(store, place, entry.target);
      done.entries++;
    }
    return done;
  }

  async *download(path: string, options: CallOptions = {}): AsyncGenerator<TreeEntry> {
    using use = await this.#access.begin("files.download", options.signal);
    for (const { names, node } of walk(directory(locate(use.store, path, true)))) {
      throwIfAborted(use.signal);
      const entry = { path: names.join("/"), mode: node.mode };
      if (node.type === "file") yield { ...entry, type: "file", content: new Uint8Array(node.data) };
      else if (node.type === "directory") yield { ...entry, type: "directory" };
      else yield { type: "symlink", path: entry.path, target: node.target };
    }
  }

  async hydrate(files: Readonly<Record<string, string | Uint8Array>>, options: CallOptions = {}): Promise<void> {
    using use = await this.#access.begin("files.hydrate", options.signal);
    const { store } = use;
    const held = Object.entries(files).map(([path, content]) => [locate(store, path, false), content] as const);
    for (const [place, content] of held) writeFile(store, place, Buffer.from(content as string), undefined);
  }
}

function locate(store: FileStore, path: string, follow: boolean): Place {
  return store.tree.locate(holdPath(path, store.workdir), follow);
}

/** An entry's place in a tree: no link on the way is followed. */
function below(store: FileStore, top: readonly string[], parts: readonly string[]): Place {
  for (let depth = 1; depth < parts.length; depth++) {
    const { node } = store.tree.locate(pathOf([...top, ...parts.slice(0, depth)]), false);
    if (node?.type === "symlink") throw new SlipwayError("path_outside", `${parts.join("/")} leads through a link.`);
  }
  return store.tree.locate(pathOf([...top, ...parts]), false);
}

function writeFile(store: FileStore, place: Place, data: Uint8Array, mode: number | undefined): void {
  writable(store, place);
  if (place.node?.type === "directory") throw new SlipwayError("not_a_file", `${pathOf(place.names)} is a directory.`);
  const before = place.node?.type === "file" ? place.node : undefined;
  if (store.tree.bytes - (before?.data.length ?? 0) + data.length > store.diskBytes) throw full(store.diskBytes);
  const now = store.now();
  store.tree.put(place.names, { type: "file", data, mode: mode ?? before?.mode ?? 0o644, modifiedAt: now }, now);
  store.watchers.tell(place.node === undefined ? "created" : "modified", place.names);
}

function makeDirectory(store: FileStore, place: Place, mode: number | undefined): void {
  if (place.node?.type === "directory") return;
  if (place.node !== undefined)
    throw new SlipwayError("file_exists", `${pathOf(place.names)} is a ${place.node.type}.`);
  writable(store, place);
  store.tree.makeDirectory(place.names, mode ?? 0o755, store.now());
  store.watchers.tell("created", place.names);
}

function makeLink(store: FileStore, place: Place, target: string): void {
  writable(store, place);
  if (place.node?.type === "directory") throw new SlipwayError("not_a_file", `${pathOf(place.names)} is a directory.`);
  const now = store.now();
  store.tree.put(place.names, { type: "symlink", target, mode: 0o777, modifiedAt: now }, now);
  store.watchers.tell("created", place.names);
}

function existing({ names, node }: Place): NonNullable<Place["node"]> {
  if (node === undefined) throw new SlipwayError("file_not_found", `${pathOf(names)} does not exist.`);
  return node;
}

function file(place: Place): FileNode {
  const node = existing(place);
  if (node.type !== "file") throw new SlipwayError("not_a_file", `${pathOf(place.names)} is a ${node.type}.`);
  return node;
}

function directory(place: Place): DirectoryNode {
  const node = existing(place);
  if (node.type !== "directory") throw new SlipwayError("not_a_directory", `${pathOf(place.names)} is a ${node.type}.`);
  return node;
}

function writable(store: FileStore, { names }: Place): void {
  if (store.user === "root" || !protectedNames.has(names[0] ?? "")) return;
  throw new SlipwayError("file_forbidden", `${pathOf(names)} is not the sandbox's user's to change.`);
}

async function gather(content: Bytes, mostBytes: number, signal: AbortSignal | undefined): Promise<Uint8Array> {
  if (typeof content === "string" || content instanceof Uint8Array) return Buffer.from(content as string);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const source = content[Symbol.asyncIterator]();
  try {
    for (
      let next = await unlessAborted(source.next(), signal);
      next.done !== true;
      next = await unlessAborted(source.next(), signal)
    ) {
      bytes += next.value.length;
      if (bytes > mostBytes) throw full(mostBytes);
      chunks.push(next.value);
    }
  } catch (error) {
    // Not awaited: a source that hangs would hold the failure back.
    void source.return?.().catch(() => undefined);
    throw error;
  }
  return Buffer.concat(chunks);
}

function full(diskBytes: number): SlipwayError {
  return new SlipwayError("out_of_disk", `The sandbox's disk of ${diskBytes} bytes is full.`);
}

function range(value: number): number {
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw new SlipwayError("invalid_request", "An offset or length is a whole number from 0 on.");
}

function expression(query: string): (line: string) => boolean {
  try {
    const pattern = new RegExp(query);
    return (line) => pattern.test(line);
  } catch (cause) {
    throw new SlipwayError("invalid_request", `${query} is not a regular expression.`, { cause });
  }
}

function join(top: string, names: readonly string[]): string {
  return `${top === "/" ? "" : top}/${names.join("/")}`;
}
