import type { FileInfo } from "@slipway/contract";
import type { Context } from "../../../input/command.ts";
import { sandboxOf } from "../../../input/resolve.ts";
import { formatBytes, formatTable } from "../../../terminal/terminal.ts";

export async function run(context: Context): Promise<void> {
  const { signal } = context.interrupts;
  const path = context.args.optional("path") ?? ".";
  const glob = context.args.text("glob");
  const { files } = await sandboxOf(context);
  const top = await files.stat(path, { signal, followSymlink: true });
  const found: FileInfo[] = [];
  if (top.type !== "directory") found.push(top);
  else for await (const info of files.list(path, { signal, ...(glob !== undefined && { glob }) })) found.push(info);
  found.sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));
  await context.result(found, () => table(found, top, context));
}

function table(found: readonly FileInfo[], top: FileInfo, context: Context): string {
  const base = top.path.endsWith("/") ? top.path : `${top.path}/`;
  const rows = found.map((info) => {
    const name = info.path.startsWith(base) ? info.path.slice(base.length) : info.path;
    const shown = info.symlinkTarget === null ? name : `${name} -> ${info.symlinkTarget}`;
    const modified = new Date(info.modifiedAt).toISOString().slice(0, 19).replace("T", " ");
    return [permissions(info), info.type === "file" ? formatBytes(info.size) : "-", modified, context.clean(shown)];
  });
  return formatTable(["MODE", "SIZE", "MODIFIED (UTC)", "NAME"], rows, context.paint);
}

const typeLetters = { file: "-", directory: "d", symlink: "l", other: "?" } as const;

function permissions({ type, mode }: FileInfo): string {
  const letters = [..."rwxrwxrwx"].map((letter, i) => (mode & (1 << (8 - i)) ? letter : "-"));
  return `${typeLetters[type]}${letters.join("")}`;
}
