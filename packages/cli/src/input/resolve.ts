import type { Client } from "@slipway/client";
import {
  type BranchId,
  type BuildId,
  branchIdSchema,
  buildIdSchema,
  type ExecId,
  execIdSchema,
  type SandboxId,
  SlipwayError,
  type SnapshotId,
  sandboxIdSchema,
  snapshotIdSchema,
} from "@slipway/contract";
import type { RestrictedSandbox, Sandbox, SandboxProvider } from "@slipway/sandbox";
import type { Context } from "./command.ts";
import { UsageError } from "./failure.ts";

/** The label that `--name` sets and that stands in for an id. */
export const nameLabel = "name";
const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;

/** The sandbox that a command's `<id>` means. */
export async function sandboxOf(context: Context): Promise<Sandbox> {
  return findSandbox(await context.provider(), context.args.argument("id"), context.interrupts.signal);
}

export async function findSandbox(provider: SandboxProvider, text: string, signal: AbortSignal): Promise<Sandbox> {
  return provider.get(await findSandboxId(provider, text, signal), { signal });
}

export async function findSandboxId(provider: SandboxProvider, text: string, signal: AbortSignal): Promise<SandboxId> {
  const whole = sandboxIdSchema.safeParse(text);
  if (whole.success) return whole.data;
  const known = await provider.list({}, { signal });
  const entries = known.map(({ id, labels }) => ({ id, name: labels[nameLabel] ?? null }));
  const id = choose("sbx", text, entries, "sandbox");
  if (id) return id;
  throw new SlipwayError("sandbox_not_found", `There is no sandbox named "${text}", and none ${partOf(text)}.`);
}

export async function findExecId(sandbox: RestrictedSandbox, text: string, signal: AbortSignal): Promise<ExecId> {
  const whole = execIdSchema.safeParse(text);
  if (whole.success) return whole.data;
  const known = await sandbox.execs({ signal });
  const id = choose(
    "exc",
    text,
    known.map((exec) => ({ id: exec.id, name: null })),
    "exec",
  );
  if (id) return id;
  throw new SlipwayError("exec_not_found", `There is no exec in ${sandbox.id} ${partOf(text)}.`);
}

export async function findSnapshotId(
  provider: SandboxProvider,
  text: string,
  signal: AbortSignal,
): Promise<SnapshotId> {
  const whole = snapshotIdSchema.safeParse(text);
  if (whole.success) return whole.data;
  const id = choose("snp", text, await provider.snapshots.list({ signal }), "snapshot");
  if (id) return id;
  throw new SlipwayError("snapshot_not_found", `There is no snapshot named "${text}", and none ${partOf(text)}.`);
}

/** How many of the newest builds are looked through for a part of an id. */
const searchedBuilds = 1000;

/** Undefined stands for the newest one. */
export async function findBuildId(client: Client, text: string | undefined, signal: AbortSignal): Promise<BuildId> {
  const whole = buildIdSchema.safeParse(text);
  if (whole.success) return whole.data;
  const known: Entry<BuildId>[] = [];
  for (let before: BuildId | null | undefined; before !== null && known.length < searchedBuilds; ) {
    const limit = text === undefined ? 1 : 100;
    const { builds, next } = await client.builds.list({ limit, ...(before !== undefined && { before }) }, { signal });
    known.push(...builds.map(({ id }) => ({ id, name: null })));
    if (text === undefined) break;
    before = next;
  }
  const id = text === undefined ? known[0]?.id : choose("bld", text, known, "build");
  if (id) return id;
  const wanted = text === undefined ? "There are no builds yet." : `There is no build ${partOf(text)}.`;
  throw new SlipwayError("build_not_found", wanted);
}

/** Of those that are kept. Its ref stands for it, too. */
export async function findBranchId(
  client: Client,
  build: BuildId,
  text: string,
  signal: AbortSignal,
): Promise<BranchId> {
  const whole = branchIdSchema.safeParse(text);
  if (whole.success) return whole.data;
  const { branches } = await client.builds.branches(build, { signal });
  const known = branches.map(({ id, ref }) => ({ id, name: ref }));
  const id = choose("cnd", text, known, "branch");
  if (id) return id;
  throw new SlipwayError("branch_not_found", `There is no branch of ${build} ${partOf(text)}.`);
}

interface Entry<Id> {
  readonly id: Id;
  readonly name: string | null;
}

/** An end of an id that is this long is no accident. */
const tellingEnd = 3;

/** What was looked for, and not found. */
function partOf(text: string): string {
  return text.length < tellingEnd
    ? `whose id begins with "${text}"; an end of an id needs ${tellingEnd} characters`
    : `whose id begins or ends with "${text}"`;
}

/** A name goes before a beginning or an end of an id. What fits more than one is refused, not guessed. */
function choose<Id extends string>(prefix: string, text: string, entries: readonly Entry<Id>[], kind: string) {
  const named = entries.filter((entry) => entry.name === text);
  const fits = ({ id }: Entry<Id>) =>
    id.startsWith(text) || id.startsWith(`${prefix}_${text}`) || (text.length >= tellingEnd && id.endsWith(text));
  const found = named.length > 0 ? named : text === "" ? [] : entries.filter(fits);
  if (found.length <= 1) return found[0]?.id;
  const shown = found.slice(0, 5).map((entry) => (entry.name ? `${entry.id} (${entry.name})` : entry.id));
  const more = found.length > shown.length ? `, and ${found.length - shown.length} more` : "";
  throw new UsageError(
    `"${text}" fits more than one ${kind}: ${shown.join(", ")}${more}.`,
    "Write more of the id, or all of it.",
  );
}

/** Names stand where ids stand, so they can not look like ids, paths or options. */
export function checkName(name: string): string {
  if (namePattern.test(name) && !/^(sbx|exc|snp)_/.test(name)) return name;
  throw new UsageError(
    `--name: "${name}" is not a name.`,
    "Use up to 63 letters, digits, dots, dashes and underscores; begin with a letter or digit, and not like an id.",
  );
}
