import { posix } from "node:path";
import { type ErrorCode, SlipwayError } from "@slipway/contract";
import { run } from "@slipway/sandbox";
import type { Box } from "../boxes/boxes.ts";

/** A failure by the names that the client knows. */
export class FileToolError extends Error {
  readonly kind: string;
  constructor(kind: string, message: string) {
    super(message);
    this.kind = kind;
  }
}

const kinds: Partial<Record<ErrorCode, readonly [kind: string, message: string]>> = {
  file_not_found: ["NotFound", "path does not exist"],
  not_a_file: ["IsDirectory", "expected a file path"],
  not_a_directory: ["NotDirectory", "a component of the path is not a directory"],
  directory_not_empty: ["DirectoryNotEmpty", "directory is not empty"],
  file_exists: ["PathAlreadyExists", "path already exists"],
  file_forbidden: ["PermissionDenied", "permission denied"],
};

export function toFailure(error: unknown): object {
  const { message } = error as Error;
  const known = error instanceof SlipwayError ? kinds[error.code] : undefined;
  const [kind, text] = error instanceof FileToolError ? [error.kind, message] : (known ?? ["Io", message]);
  return { version: 1, error_kind: kind, message: text, detail: message };
}

/** What the client is told of a file. */
interface Entry {
  readonly name: string;
  readonly path: string;
  readonly type: "file" | "directory" | "symlink";
  readonly size: number;
  readonly mode: number;
  readonly permissions: string;
  readonly owner: string;
  readonly group: string;
  readonly modified_time: number;
  readonly symlink_target?: string;
}

/** The owners' names are known inside only, so that `find` tells of them. */
const format = ["%f", "%y", "%s", "%m", "%u", "%g", "%T@", "%l", ""].join("\\0");

export async function describe(box: Box, path: string): Promise<Entry> {
  const [entry] = await find(box, [path, "-maxdepth", "0"]);
  if (entry === undefined) throw await whyNot(box, path);
  return { ...entry, name: posix.basename(path), path };
}

export async function listDirectory(box: Box, path: string): Promise<Entry[]> {
  const { type } = await box.files.stat(path, { followSymlink: true });
  if (type !== "directory") throw new FileToolError("IsFile", "expected a directory path");
  const entries = await find(box, ["-H", path, "-mindepth", "1", "-maxdepth", "1"]);
  return entries
    .map((entry) => ({ ...entry, path: posix.join(path, entry.name) }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

async function find(box: Box, what: readonly string[]): Promise<Entry[]> {
  const { stdout } = await run(box, ["find", ...what, "-printf", format]);
  const fields = stdout.split("\0").slice(0, -1);
  return Array.from({ length: Math.floor(fields.length / 8) }, (_, number) => {
    const [name = "", kind = "", size = "0", permissions = "0", owner = "", group = "", modified = "0", target = ""] =
      fields.slice(number * 8, number * 8 + 8);
    const type = kind === "l" ? "symlink" : kind === "d" ? "directory" : "file";
    const mode = formatBits[type] | Number.parseInt(permissions, 8);
    return {
      name,
      path: name,
      type,
      size: Number(size),
      mode,
      permissions: permissions.padStart(4, "0"),
      owner,
      group,
      modified_time: Number(modified),
      ...(type === "symlink" && { symlink_target: target }),
    };
  });
}

const formatBits = { file: 0o100000, directory: 0o040000, symlink: 0o120000 } as const;

async function whyNot(box: Box, path: string): Promise<unknown> {
  try {
    await box.files.stat(path);
  } catch (error) {
    return error;
  }
  return new FileToolError("Io", `${path} cannot be read`);
}
