import type { Client } from "@slipway/client";
import {
  type BranchId,
  type BuildId,
  type BuildStatus,
  branchIdSchema,
  buildIdSchema,
  type ErrorCode,
  type ExecId,
  execIdSchema,
  type SandboxId,
  SlipwayError,
  type SnapshotId,
  sandboxIdSchema,
  snapshotIdSchema,
} from "@slipway/contract";
import type { RestrictedSandbox, Sandbox, SandboxProvider } from "@slipway/sandbox";
import type { z } from "zod";
import type { Context } from "./command.ts";
import { UsageError } from "./failure.ts";

/** The label that `--name` sets, for use in place of the ID. */
export const nameLabel = "name";
const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;

/** The sandbox of a command's `<id>`. */
export async function sandboxOf(context: Context): Promise<Sandbox> {
  return findSandbox(await context.provider(), context.args.argument("id"), context.interrupts.signal);
}

export async function findSandbox(provider: SandboxProvider, text: string, signal: AbortSignal): Promise<Sandbox> {
  return provider.get(await findSandboxId(provider, text, signal), { signal });
}

export function findSandboxId(provider: SandboxProvider, text: string, signal: AbortSignal): Promise<SandboxId> {
  return find(sandboxKind, text, async () => {
    const known = await provider.list({}, { signal });
    return known.map(({ id, labels }) => ({ id, name: labels[nameLabel] ?? null }));
  });
}

export function findExecId(sandbox: RestrictedSandbox, text: string, signal: AbortSignal): Promise<ExecId> {
  return find(execKind, text, async () => (await sandbox.execs({ signal })).map(unnamed));
}

export function findSnapshotId(provider: SandboxProvider, text: string, signal: AbortSignal): Promise<SnapshotId> {
  return find(snapshotKind, text, () => provider.snapshots.list({ signal }));
}

/** How many of the newest builds to search. */
const searchedBuilds = 1000;

/** An undefined text means the newest build. */
async function findBuildId(client: Client, text: string | undefined, signal: AbortSignal): Promise<BuildId> {
  if (text !== undefined) return find(buildKind, text, () => newestBuilds(client, signal));
  const { builds } = await client.builds.list({ limit: 1 }, { signal });
  if (builds[0]) return builds[0].id;
  throw new SlipwayError("build_not_found", "There are no builds yet.");
}

/** The server, and the build of a command's `<id>`. */
export async function buildOf({ args, interrupts, server }: Context) {
  const { signal } = interrupts;
  const client = await server();
  return { client, signal, id: await findBuildId(client, args.optional("id"), signal) };
}

async function newestBuilds(client: Client, signal: AbortSignal): Promise<Entry<BuildId>[]> {
  const known: Entry<BuildId>[] = [];
  for await (const build of everyBuild(client, {}, signal)) {
    if (known.push(unnamed(build)) === searchedBuilds) break;
  }
  return known;
}

/** Newest first. */
export async function* everyBuild(client: Client, filter: { status?: BuildStatus[] }, signal: AbortSignal) {
  for (let before: BuildId | null | undefined; before !== null; ) {
    const { builds, next } = await client.builds.list({ ...filter, limit: 100, ...(before && { before }) }, { signal });
    yield* builds;
    before = next;
  }
}

/** A branch that the build keeps; its ref serves as its name. */
export function findBranchId(client: Client, build: BuildId, text: string, signal: AbortSignal): Promise<BranchId> {
  return find(branchKind, text, async () => {
    const { branches } = await client.builds.branches(build, { signal });
    return branches.map(({ id, ref }) => ({ id, name: ref }));
  });
}

interface Kind<Id> {
  readonly noun: string;
  readonly prefix: string;
  readonly schema: z.ZodType<Id>;
  readonly code: ErrorCode;
}

const sandboxKind = { noun: "sandbox", prefix: "sbx", schema: sandboxIdSchema, code: "sandbox_not_found" } as const;
const execKind = { noun: "exec", prefix: "exc", schema: execIdSchema, code: "exec_not_found" } as const;
const snapshotKind = { noun: "snapshot", prefix: "snp", schema: snapshotIdSchema, code: "snapshot_not_found" } as const;
const buildKind = { noun: "build", prefix: "bld", schema: buildIdSchema, code: "build_not_found" } as const;
const branchKind = { noun: "branch", prefix: "cnd", schema: branchIdSchema, code: "branch_not_found" } as const;

interface Entry<Id> {
  readonly id: Id;
  readonly name: string | null;
}

const unnamed = <Id>({ id }: { readonly id: Id }): Entry<Id> => ({ id, name: null });

/** A shorter end of an ID could match by accident. */
const shortestEnd = 3;

/** A whole ID needs no lookup. A name comes before a part of an ID; refuses a text that matches more than one. */
async function find<Id extends string>(
  { noun, prefix, schema, code }: Kind<Id>,
  text: string,
  list: () => Promise<readonly Entry<Id>[]>,
): Promise<Id> {
  const whole = schema.safeParse(text);
  if (whole.success) return whole.data;
  const entries = await list();
  const named = entries.filter((entry) => entry.name === text);
  const matches = ({ id }: Entry<Id>) =>
    id.startsWith(text) || id.startsWith(`${prefix}_${text}`) || (text.length >= shortestEnd && id.endsWith(text));
  const found = named.length > 0 ? named : text === "" ? [] : entries.filter(matches);
  if (found.length === 1 && found[0]) return found[0].id;
  if (found.length === 0) {
    const hint = text.length < shortestEnd ? ` The end of an ID needs ${shortestEnd} characters.` : "";
    throw new SlipwayError(code, `No ${noun} matches "${text}".${hint}`);
  }
  const shown = found.slice(0, 5).map((entry) => (entry.name ? `${entry.id} (${entry.name})` : entry.id));
  const more = found.length > shown.length ? `, and ${found.length - shown.length} more` : "";
  throw new UsageError(`"${text}" matches more than one ${noun}: ${shown.join(", ")}${more}.`, "Write more of the ID.");
}

/** Names are used in place of IDs, so they must not look like IDs, paths or options. */
export function checkName(name: string): string {
  if (namePattern.test(name) && !/^(sbx|exc|snp)_/.test(name)) return name;
  throw new UsageError(
    `--name: "${name}" is not a name.`,
    "Use up to 63 letters, digits, dots, dashes and underscores; begin with a letter or digit, and not like an ID.",
  );
}
