import type { MainFile } from "@slipway/contract";
import type { Git, GitOptions } from "./git.ts";
import { fieldsOf } from "./objects.ts";

/** A file that differs between two trees. */
export interface ChangedFile {
  readonly path: string;
  readonly change: "added" | "changed" | "deleted" | "renamed";
  /** The old path of a renamed file. */
  readonly from?: string;
  /** Names of blobs; undefined: the file does not exist on that side. */
  readonly before: string | undefined;
  readonly after: string | undefined;
  /** It was or is a symbolic link: the blob names another file. */
  readonly link?: true;
}

const diffOptions = ["--no-ext-diff", "--no-textconv", "--no-color", "-M", "-l500", "--end-of-options"];
const linkMode = "120000";
const words = { A: "added", D: "deleted", R: "renamed" } as const;

/** The files that `to` changes in `from`. */
export async function changedFiles(
  git: Git,
  from: string,
  to: string,
  options: Pick<GitOptions, "signal"> = {},
): Promise<ChangedFile[]> {
  const { stdout } = await git.run(
    ["diff-tree", "-r", "-z", "--raw", "--no-abbrev", ...diffOptions, from, to],
    options,
  );
  const fields = fieldsOf(stdout).values();
  const changes: ChangedFile[] = [];
  for (const line of fields) {
    const [was = "", is, before = "", after = "", status = ""] = line.split(" ");
    const letter = status.charAt(0);
    const path = fields.next().value ?? "";
    const renamed = letter === "R" ? fields.next().value : undefined;
    changes.push({
      path: renamed ?? path,
      change: words[letter as keyof typeof words] ?? "changed",
      ...(renamed !== undefined && { from: path }),
      before: present(before),
      after: present(after),
      ...((was === `:${linkMode}` || is === linkMode) && { link: true }),
    });
  }
  return changes;
}

/** The part of a change that reports and clients get. */
export function mainFileOf({ path, change, from }: ChangedFile): MainFile {
  return { path, change, ...(from !== undefined && { from }) };
}

function present(name: string): string | undefined {
  return /^0+$/.test(name) ? undefined : name;
}

export interface Cut {
  readonly text: string;
  /** There was more text. */
  readonly cut: boolean;
}

/** What `to` changes in `from`, as a patch for readers. */
export async function diffText(
  git: Git,
  from: string,
  to: string,
  { mostBytes, signal }: { readonly mostBytes: number; readonly signal?: AbortSignal | undefined },
): Promise<Cut> {
  const args = ["diff-tree", "-r", "-p", "--no-commit-id", ...diffOptions, from, to];
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of git.stream(args, { signal, outputBytes: Number.POSITIVE_INFINITY })) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > mostBytes) break;
  }
  return cutText(Buffer.concat(chunks), mostBytes);
}

/** Keeps as many whole lines as fit, or the start of a first line that does not fit. */
function cutText(content: Buffer, mostBytes: number): Cut {
  if (content.length <= mostBytes) return { text: content.toString("utf8"), cut: false };
  const lineEnd = content.subarray(0, mostBytes).lastIndexOf(0x0a);
  const text = content.subarray(0, lineEnd === -1 ? mostBytes : lineEnd + 1).toString("utf8");
  return { text: text.replace(/\ufffd+$/, ""), cut: true };
}
