import { createHash } from "node:crypto";
import type { CreateSandboxInput, SnapshotId } from "@slipway/contract";
import type { WorkingBuild } from "@slipway/engine";
import { type CallOptions, type OwnedSandbox, projectPath, type Sandbox, type SandboxProvider } from "@slipway/sandbox";
import type { Dependencies } from "./dependencies.ts";
import { carryProject } from "./files.ts";
import { countCached, fetchMetadata, installNamed, runScripts } from "./install.ts";
import { createLines } from "./line.ts";

/**
 * What was installed and downloaded before, as snapshots: of one account and project, never of another. Disposing of it ends
 * what is being installed.
 */
export interface KeptInstalls extends AsyncDisposable {
  /** The manifests with what they name installed, in `projectPath`. It is made when it is not there. */
  installed(build: WorkingBuild, dependencies: Named, options?: CallOptions): Promise<SnapshotId>;
  /** Nothing but downloaded packages. */
  packages(build: WorkingBuild): Promise<SnapshotId | undefined>;
}

export type Named = Extract<Dependencies, { kind: "named" }>;

export interface KeptParts {
  readonly provider: Pick<SandboxProvider, "get" | "list" | "snapshots" | "capabilities">;
  create(request: CreateSandboxInput, options: CallOptions): Promise<OwnedSandbox>;
}

const hourMs = 3_600_000;
const keptMs = 7 * 24 * hourMs;

export function createKeptInstalls({ provider, create }: KeptParts): KeptInstalls {
  const { snapshots, capabilities } = provider;
  const named = async (name: string) =>
    (await snapshots.list()).filter((one) => one.name === name).sort((one, other) => other.createdAt - one.createdAt);
  const find = async (name: string) => (await named(name))[0]?.id;
  /** Of a stopped sandbox nothing has to be copied. */
  const stop = async (sandbox: Sandbox) => {
    if (capabilities.stopStart) await sandbox.stop();
  };
  const keep = async (sandbox: Sandbox, name: string): Promise<SnapshotId> => {
    await stop(sandbox);
    return (await sandbox.snapshot({ name, expiresInMs: keptMs })).id;
  };

  /** Before any script has run in the sandbox: what it has downloaded is as the registry gave it. */
  const keepPackages = async (owner: string, sandbox: Sandbox) => {
    const old = await named(packagesOf(owner));
    await stop(sandbox);
    await using copy = await sandbox.fork();
    await copy.files.remove(projectPath, { recursive: true });
    await keep(copy, packagesOf(owner));
    for (const { id } of old) await snapshots.update(id, { name: null, expiresInMs: hourMs });
    if (capabilities.stopStart) await sandbox.start();
  };

  const install = async (build: WorkingBuild, dependencies: Named, call: CallOptions): Promise<SnapshotId> => {
    const owner = ownerOf(build);
    const name = installedOf(owner, dependencies);
    const found = await find(name);
    if (found !== undefined) return found;
    const labels = { build: build.id, purpose: "install" };
    // Left by a process that is gone: of this owner there is one install at a time.
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

  // One after the other, so that each has what the ones before it have downloaded, or finds what it wants.
  const lines = createLines();
  return {
    async installed(build, dependencies, { signal: own } = {}) {
      const owner = ownerOf(build);
      // What is there does not wait for what others install.
      const found = await find(installedOf(owner, dependencies));
      return found ?? (await lines.run(owner, (signal) => install(build, dependencies, { signal }), own));
    },
    packages: (build) => find(packagesOf(ownerOf(build))),
    [Symbol.asyncDispose]: () => lines[Symbol.asyncDispose](),
  };
}

const installedOf = (owner: string, { key }: Named) => `installed ${owner} ${key}`;
const packagesOf = (owner: string) => `packages ${owner}`;

function ownerOf({ account, project }: WorkingBuild): string {
  return createHash("sha256")
    .update(JSON.stringify([account, project]))
    .digest("hex")
    .slice(0, 32);
}
