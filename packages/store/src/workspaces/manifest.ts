import { SlipwayError } from "@slipway/contract";
import { z } from "zod";

const mode = z.int().min(0).max(0o7777);
const entrySchema = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("file"),
    path: z.string(),
    mode,
    size: z.int().min(0),
    sha256: z.string().regex(/^[0-9a-f]{64}$/),
  }),
  z.strictObject({ type: z.literal("directory"), path: z.string(), mode }),
  z.strictObject({ type: z.literal("symlink"), path: z.string(), target: z.string().min(1).max(4095) }),
]);
const manifestSchema = z.strictObject({
  format: z.literal("slipway-version-1"),
  version: z.string(),
  createdAtMs: z.int(),
  /** The version that was the newest when this one was made. */
  after: z.string().nullable(),
  entries: z.array(entrySchema),
});

/** What a version holds. The version exists when its manifest does. */
export type Manifest = z.output<typeof manifestSchema>;
export type Entry = Manifest["entries"][number];
export type FileEntry = Extract<Entry, { type: "file" }>;

/** Of a tree; its manifest then has at most some 150 MB. */
export const maxEntries = 500_000;
export const maxManifestBytes = 256 * 1024 * 1024;

/** One entry for each line, so that people and `grep` can read it. */
export function formatManifest({ entries, ...head }: Manifest): string {
  const lines = entries.map((entry) => JSON.stringify(entry));
  return `${JSON.stringify(head).slice(0, -1)},"entries":[\n${lines.join(",\n")}\n]}\n`;
}

/** Whoever can write to the bucket can write a manifest: its paths are checked like any other input. */
export function parseManifest(text: string, version: string): Manifest {
  let json: { readonly entries?: { readonly length?: unknown } } | null;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw damaged(version, "it is no JSON", cause);
  }
  // Before each entry gets its own mistake.
  if (Number(json?.entries?.length) > maxEntries) throw damaged(version, `it has more than ${maxEntries} entries`);
  const parsed = manifestSchema.safeParse(json);
  if (!parsed.success) {
    throw damaged(version, z.prettifyError(new z.ZodError(parsed.error.issues.slice(0, 3))).slice(0, 300));
  }
  if (parsed.data.version !== version) throw damaged(version, `it is of version ${parsed.data.version}`);
  checkTree(parsed.data.entries, (mistake) => damaged(version, mistake));
  return parsed.data;
}

/** Every path is plain and there once, and nothing lies behind a file or a link. */
export function checkTree(entries: readonly Entry[], failure: (mistake: string) => Error): void {
  const types = new Map<string, Entry["type"]>();
  for (const { path, type } of entries) {
    const mistake = pathMistake(path) ?? (types.has(path) ? "it is there twice" : undefined);
    if (mistake !== undefined) throw failure(`${JSON.stringify(path)}: ${mistake}`);
    types.set(path, type);
  }
  for (const path of types.keys()) {
    const parent = parentsOf(path).find((above) => types.has(above) && types.get(above) !== "directory");
    if (parent !== undefined) throw failure(`${JSON.stringify(path)}: it lies below a ${types.get(parent)}`);
  }
}

/** The directories that a path lies in, outermost first. */
export function parentsOf(path: string): string[] {
  const parents: string[] = [];
  for (let at = path.indexOf("/"); at >= 0; at = path.indexOf("/", at + 1)) parents.push(path.slice(0, at));
  return parents;
}

/** Undefined for a path that stays where it is put, and that every storage can name. */
export function pathMistake(path: string): string | undefined {
  const parts = path.split("/");
  if (parts.some((part) => part === "" || part === "." || part === "..")) return "it is no plain relative path";
  if (path.includes("\0")) return "it holds a NUL";
  // What a file name that is no UTF-8 is decoded to: the file could not be found again by it.
  if (path.includes("\ufffd") || !path.isWellFormed()) return "its name is not valid UTF-8";
  if (Buffer.byteLength(path) > maxPathBytes) return `its path has more than ${maxPathBytes} bytes`;
  if (parts.some((part) => Buffer.byteLength(part) > 255)) return "a part of its path has more than 255 bytes";
  return undefined;
}

/** Of the 1,024 bytes of an object's key, the rest is for the place and the version. */
const maxPathBytes = 800;

function damaged(version: string, mistake: string, cause?: unknown): SlipwayError {
  return new SlipwayError("storage_damaged", `The manifest of version ${version} cannot be used: ${mistake}.`, {
    cause,
  });
}
