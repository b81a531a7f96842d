import { stat } from "node:fs/promises";
import { SlipwayError } from "@slipway/contract";
import { walkTree } from "@slipway/sandbox";
import { parsePlace, type Workspace } from "@slipway/store/workspaces";
import type { Context } from "../../input/command.ts";
import { formatBytes } from "../../terminal/terminal.ts";
import { writeTree } from "../sandbox/files/hold.ts";
import { counted } from "../sandbox/files/transfer.ts";

export async function list(context: Context): Promise<void> {
  const versions = await (await workspaceOf(context)).versions({ signal: context.interrupts.signal });
  await context.result(versions, versions.map(({ version }) => `${version}\n`).join(""));
  if (versions.length === 0) await context.note(`No versions at ${context.args.argument("place")}.`);
}

export async function remove(context: Context): Promise<void> {
  const version = context.args.argument("version");
  await (await workspaceOf(context)).removeVersion(version, { signal: context.interrupts.signal });
  await context.result({ removed: version }, "");
}

export async function put(context: Context): Promise<void> {
  const directory = context.args.argument("directory");
  if (!(await stat(directory)).isDirectory()) {
    throw new SlipwayError("not_a_directory", `${directory} is not a directory.`);
  }
  const workspace = await workspaceOf(context);
  const options = counted(context);
  const leftOut: { path: string; reason: string }[] = [];
  const onLeftOut = (path: string, reason: string) => void leftOut.push({ path, reason });
  const written = await workspace.publish(walkTree(directory, { ...options, onLeftOut }), options);
  context.progress.clear();
  for (const { path, reason } of leftOut) await context.note(`skipped ${path}: ${reason}`);
  await context.result({ ...written, leftOut }, `${written.version}\n`);
}

/** Contents and names come from a sandbox and are untrusted, as those of `sandbox cp` are. */
export async function get(context: Context): Promise<void> {
  const options = counted(context);
  const workspace = await workspaceOf(context);
  const { version, entries } = await workspace.read({ ...options, version: context.args.text("version") });
  const { leftOut, ...written } = await writeTree(context.args.argument("directory"), entries, options);
  context.progress.clear();
  for (const { path, reason } of leftOut) await context.note(`skipped ${path}: ${reason}`);
  await context.result({ version, ...written, leftOut }, "");
  await context.note(`copied ${written.entries} entries, ${formatBytes(written.bytes)}`);
}

async function workspaceOf(context: Context): Promise<Workspace> {
  const place = parsePlace(context.args.argument("place"));
  return await (await context.storage()).at(place);
}
