import { type BuildId, type CreateSandboxInput, hasCode, type SnapshotId } from "@slipway/contract";
import type { WorkingBuild } from "@slipway/engine";
import type { CallOptions, OwnedSandbox, Sandbox, SandboxProvider } from "@slipway/sandbox";
import type { BuildSecrets } from "../build-secrets.ts";
import type { BuildRepository } from "../repository/repository.ts";
import { type Dependencies, haveSameInstall, planDependencies, tellsInstall } from "./dependencies.ts";
import { carryProject, putFiles, removeFiles } from "./files.ts";
import { installInPlace, packageEnvironment } from "./install.ts";
import { createKeptInstalls } from "./kept.ts";

/**
 * Sandboxes with the files and dependencies of a commit, which no agent has used. Disposing of it aborts running installs;
 * opened sandboxes belong to their callers.
 */
export interface Workspaces extends AsyncDisposable {
  /**
   * The commit's files are in `projectPath`, without git, with their dependencies installed. The sandbox can only reach the
   * hosts of the build's secrets. Fails with `install_failed` if the commit is at fault; the message ends with the output of
   * the install.
   */
  open(build: WorkingBuild, commit: string, options: WorkspaceOptions): Promise<OwnedSandbox>;
  /**
   * Moves such a sandbox to another commit and returns the changed paths. Null: the dependencies differ, and nothing was
   * done. If it fails, the files are in between the two commits.
   */
  move(
    build: WorkingBuild,
    sandbox: Sandbox,
    commits: { readonly from: string; readonly to: string },
    options?: CallOptions,
  ): Promise<readonly string[] | null>;
  /**
   * The snapshot that attempts start from: the commit's manifests with what they name installed in `projectPath`; or, if
   * manifests alone do not determine the install, just earlier downloads. Null: there is neither.
   */
  base(build: WorkingBuild, commit: string, options?: CallOptions): Promise<SnapshotId | null>;
}

export interface WorkspaceOptions extends CallOptions {
  /** Becomes a label, besides the build's. */
  readonly purpose: string;
  readonly ports?: number[];
  readonly labels?: Readonly<Record<string, string>>;
  readonly lifetimeMs?: number;
  /** Names of tool directories. */
  readonly tools?: string[];
}

export interface WorkspaceParts {
  readonly provider: Pick<SandboxProvider, "create" | "get" | "list" | "snapshots" | "capabilities">;
  readonly repositories: { of(build: BuildId): Promise<BuildRepository> };
  readonly secrets: Pick<BuildSecrets, "of">;
}

const hourMs = 3_600_000;

export function createWorkspaces({ provider, repositories, secrets }: WorkspaceParts): Workspaces {
  const create = (request: CreateSandboxInput, call?: CallOptions) =>
    provider.create(
      { lifetimeMs: hourMs, idleMs: null, onEnd: "destroy", env: { ...packageEnvironment }, ...request },
      call,
    );
  const kept = createKeptInstalls({ provider, create });
  const dependenciesOf = async (build: WorkingBuild, commit: string, call: CallOptions): Promise<Dependencies> => {
    const names = new Set<string>();
    const wants = (path: string) => {
      names.add(path.split("/", 1)[0] ?? "");
      return tellsInstall(path);
    };
    return planDependencies(names, await (await repositories.of(build.id)).read(commit, wants, call));
  };
  const startOf = (build: WorkingBuild, dependencies: Dependencies, call: CallOptions) =>
    dependencies.kind === "named" ? kept.installed(build, dependencies, call) : kept.packages(build);

  return {
    async open(build, commit, { purpose, labels: own, signal, ...request }) {
      const call = signal === undefined ? {} : { signal };
      const dependencies = await dependenciesOf(build, commit, call);
      const repository = await repositories.of(build.id);
      const labels = { ...own, build: build.id, purpose };
      const network = { secrets: [...(await secrets.of(build.id))] };
      const start = async (wanted: CreateSandboxInput) => {
        const snapshot = await startOf(build, dependencies, call);
        return await create({ ...wanted, ...(snapshot !== undefined && { snapshot }) }, call);
      };
      const startWithFiles = async (wanted: CreateSandboxInput) => {
        await using made = new AsyncDisposableStack();
        // A snapshot may expire between being found and being used.
        const sandbox = made.use(
          await start(wanted).catch((error: unknown) => {
            if (hasCode(error, "snapshot_not_found")) return start(wanted);
            throw error;
          }),
        );
        await putFiles(sandbox, repository.files(commit, call), call);
        made.move();
        return sandbox;
      };
      const inPlace = dependencies.kind === "unknown" || (dependencies.kind === "named" && dependencies.ownScripts);
      if (!inPlace) return await startWithFiles({ ...request, labels, network });

      // Install scripts must not reach the app's services.
      await using installing = await startWithFiles({ labels, network: { registries: true } });
      await installInPlace(installing, dependencies, call);
      await using made = new AsyncDisposableStack();
      const sandbox = made.use(await create({ ...request, labels, network }, call));
      await carryProject(installing, sandbox, call);
      // Scripts may have changed the commit's files.
      await putFiles(sandbox, repository.files(commit, call), call);
      made.move();
      return sandbox;
    },

    async move(build, sandbox, { from, to }, call = {}) {
      const before = await dependenciesOf(build, from, call);
      if (!haveSameInstall(before, await dependenciesOf(build, to, call))) return null;
      const repository = await repositories.of(build.id);
      const changes = await repository.changedFiles(from, to, call);
      await removeFiles(sandbox, changes, call);
      const only = changes.filter(({ change }) => change !== "deleted").map(({ path }) => path);
      await putFiles(sandbox, repository.files(to, call), { only, ...call });
      return changes.map(({ path }) => path);
    },

    async base(build, commit, call = {}) {
      try {
        const dependencies = await dependenciesOf(build, commit, call);
        const installed = await startOf(build, dependencies, call);
        if (dependencies.kind === "named" && !dependencies.ownScripts) return installed ?? null;
      } catch (error) {
        // The attempt may be there to repair it.
        if (!hasCode(error, "install_failed")) throw error;
      }
      return (await kept.packages(build)) ?? null;
    },

    [Symbol.asyncDispose]: () => kept[Symbol.asyncDispose](),
  };
}
