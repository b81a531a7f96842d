import { createHash } from "node:crypto";
import type { CreateSandboxInput, SnapshotId } from "@slipway/contract";
import type { WorkingBuild } from "@slipway/engine";
import { type CallOptions, type OwnedSandbox, projectPath, type Sandbox, type SandboxProvider } from "@slipway/sandbox";
import type { NamedDependencies } from "./dependencies.ts";
import { carryProject } from "./files.ts";
import { countCached, fetchMetadata, installNamed, runScripts } from "./install.ts";
import { createLines } from "./line.ts";

interface KeptParts {
  readonly provider: Pick<SandboxProvider, "get" | "list" | "snapshots" | "capabilities">;
  create(request: CreateSandboxInput, options: CallOptions): Promise<OwnedSandbox>;
}

const hourMs = 3_600_000;
const keptMs = 7 * 24 * hourMs;

/**
 * Earlier installs and downloads as snapshots, never shared between accounts or projects. Disposing of it aborts running
 * installs.
 */
export function createKeptInstalls({ provider, create }: KeptParts) {
  const { snapshots, capabilities } = provider;
  const named = async (name: string) =>
    (await snapshots.list()).filter((one) => one.name === name).sort((one, other) => other.createdAt - one.createdAt);
  const find = async (name: string) => (await named(name))[0]?.id;
  /** A snapshot of a stopped sandbox needs no copy. */
  const stop = async (sandbox: Sandbox) => {
    if (capabilities.stopStart) await sandbox.stop();
  };
  const keep = async (sandbox: Sandbox, name: string): Promise<SnapshotId> => {
    await stop(sandbox);
    return (await sandbox.snapshot({ name, expiresInMs: keptMs })).id;
  };

  /** Call it before any script has run in the sandbox: only then are its downloads what the registry sent. */
  const keepPackages = async (owner: string, sandbox: Sandbox) => {
    const old = await named(packagesOf(owner));
    await stop(sandbox);
    await using copy = await sandbox.fork();
    await copy.files.remove(projectPath, { recursive: true });
    await keep(copy, packagesOf(owner));
    for (const { id } of old) await snapshots.update(id, { name: null, expiresInMs: hourMs });
    if (capabilities.stopStart) await sandbox.start();
  };

  const install = async (
    build: WorkingBuild,
    dependencies: NamedDependencies,
    call: CallOptions,
  ): Promise<SnapshotId> => {
    const owner = ownerOf(build);
    const name = installedOf(owner, dependencies);
    const found = await find(name);
    if (found !== undefined) return found;
    const labels = { build: build.id, purpose: "install" };
    // Leftovers of a dead process: an owner has one install at a time.
    for (const { id } of await provider.list({ labels })) await (await provider.get(id)).destroy();
    const snapshot = await find(packagesOf(owner));
    const network = { registries: true };
    await using sandbox = await create({ labels, network, ...(snapshot !== undefined && { snapshot }) }, call);
    const before = await countCached(sandbox, call);
    await installNamed(sandbox, dependencies, call);
    if ((await countCached(sandbox, call)) !== before) {
      await fetchMetadata(sandbox, dependencies, call);
      await keepPackages(owner, sandbox);
    }
    if (dependencies.ownScripts) return await keep(sandbox, name);
    await runScripts(sandbox, call);
    const packages = await find(packagesOf(owner));
    await using clean = await create({ labels, ...(packages !== undefined && { snapshot: packages }) }, call);
    await carryProject(sandbox, clean, call);
    return await keep(clean, name);
  };

  // One at a time, so that each install uses the downloads of those before it, or finds its result.
  const lines = createLines();
  return {
    /** A snapshot of the manifests with what they name installed in `projectPath`; made if it is missing. */
    async installed(build: WorkingBuild, dependencies: NamedDependencies, { signal: own }: CallOptions = {}) {
      const owner = ownerOf(build);
      // An existing snapshot must not wait for other installs.
      const found = await find(installedOf(owner, dependencies));
      return found ?? (await lines.run(owner, (signal) => install(build, dependencies, { signal }), own));
    },
    /** A snapshot with nothing but downloaded packages. */
    packages: (build: WorkingBuild) => find(packagesOf(ownerOf(build))),
    [Symbol.asyncDispose]: () => lines[Symbol.asyncDispose](),
  };
}

const installedOf = (owner: string, { key }: NamedDependencies) => `installed ${owner} ${key}`;
const packagesOf = (owner: string) => `packages ${owner}`;

function ownerOf({ account, project }: WorkingBuild): string {
  return createHash("sha256")
    .update(JSON.stringify([account, project]))
    .digest("hex")
    .slice(0, 32);
}
