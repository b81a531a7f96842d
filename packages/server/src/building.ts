import { join } from "node:path";
import type { BuildId, ComputePrice } from "@slipway/contract";
import { hasEnded, type NewEvent, report, type Work } from "@slipway/engine";
import type { SandboxProvider } from "@slipway/sandbox";
import { openUsedPorts } from "@slipway/sandbox/local/preview";
import type { Building, BuildingPorts } from "./compose.ts";
import { readAll } from "./work/all-records.ts";
import { createAttempts } from "./work/attempts/attempts.ts";
import { openBuildSecrets } from "./work/build-secrets.ts";
import { payForSandboxes } from "./work/compute/pay.ts";
import { createDummies } from "./work/gates/checks/dummies.ts";
import { createGates } from "./work/gates/gates.ts";
import { endAllButMain, endUnwantedRuns } from "./work/left-behind.ts";
import { dropBranches } from "./work/merging/branches.ts";
import { createMergeWork } from "./work/merging/merging.ts";
import { createRemote, type RemoteSettings } from "./work/merging/remote.ts";
import { createResults } from "./work/merging/result.ts";
import { insteadText, readInstead } from "./work/preview/instead.ts";
import { createPreviews } from "./work/preview/preview.ts";
import { recordSandboxes } from "./work/recorded-sandboxes.ts";
import { createRepositories } from "./work/repository/repositories.ts";
import { repositoryName } from "./work/repository/repository.ts";
import { createWorkspaces } from "./work/workspaces/workspaces.ts";

export interface BuildingParts extends BuildingPorts {
  readonly provider: SandboxProvider;
  readonly price: ComputePrice;
  readonly stateDirectory: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Undefined: main is not pushed. */
  readonly remote?: RemoteSettings | undefined;
  readonly clock: { now(): number };
  readonly warn: (message: string) => void;
}

/** Does the tasks of builds, from an attempt's first file to main and its preview. */
export function createBuilding(parts: BuildingParts): Building {
  const { name, store, bridge, gateway, reports, note, stateDirectory, environment, clock, warn } = parts;
  const directory = join(stateDirectory, "builds");
  const repositories = createRepositories({ directory, environment });
  const repositoryOf = (build: BuildId) => join(repositories.directoryOf(build), repositoryName);
  const secrets = openBuildSecrets(directory);
  /** Drops events of a build that has ended. */
  const tell = async (build: BuildId, event: NewEvent) => {
    try {
      if (!hasEnded(await store.builds.get(build))) await reports.report(build, [event]);
    } catch (error) {
      warn(`${build}: ${(error as Error).message}`);
    }
  };
  const paid = payForSandboxes(parts.provider, {
    price: parts.price,
    ledger: store.ledger,
    holder: name,
    clock,
    warn,
    refused({ build, budgetMicroUsd }) {
      // A build that is paused already asks again when it is resumed.
      const pause = async () => {
        if ((await store.builds.get(build)).status !== "running") return;
        await tell(build, report("compute.refused", null, { budgetMicroUsd }));
      };
      pause().catch((error: Error) => warn(`${build}: ${error.message}`));
    },
  });
  const { provider } = paid;
  const recorded = recordSandboxes(provider, { store, tell, clock });
  const workspaces = createWorkspaces({ provider: recorded, repositories, secrets });
  const previews = createPreviews({
    provider: recorded,
    workspaces,
    repositories,
    directory,
    usedPorts: openUsedPorts(join(stateDirectory, "preview-ports")),
    insteadOf: async (build, commit) => insteadText(await readInstead({ store, repositoryOf }, build, commit)),
    isUnderway: async (build) => !hasEnded(await store.builds.get(build)),
    onReady: (build, address) => void tell(build, report("preview.ready", `preview.ready:${address}`, { address })),
    onTrouble(build, reason) {
      warn(`${build}: ${reason}`);
      const told = reason.slice(0, 2000);
      void tell(build, report("preview.failed", `preview.failed:${told.slice(0, 200)}`, { reason: told }));
    },
  });
  // Previews of ended builds too.
  void previews.reopen();
  const attempts = createAttempts({
    provider,
    repositories,
    workspaces,
    secrets,
    gateway,
    store,
    bridge,
    clock,
    warn,
    report: reports.report,
    note,
  });
  const remote =
    parts.remote && createRemote({ ...parts.remote, repositories, store, note, environment, tell, log: warn });
  // Finishes what an earlier process did not get to.
  remote?.finish().catch((error: Error) => warn(error.message));
  const results = createResults({ repositories, environment, warn });
  const gates = createGates({ provider: recorded, workspaces, repositories, store, now: () => clock.now() });
  const merging = createMergeWork({
    store,
    repositories,
    clock,
    warn,
    gates,
    preview: { follow: (build, commit) => void previews.follow(build, commit), close: previews.end },
    report: reports.report,
    onMain(build, commit) {
      void results.update(build.id);
      void remote?.push(build);
      return attempts.mainMoved(build, commit);
    },
  });
  const work: Work = {
    async carryOut(build, asked) {
      await attempts.carryOut(build, asked);
      await merging.carryOut(build, asked);
    },
    canCarryOn: attempts.canCarryOn,
    async reattach(build, all) {
      await endUnwantedRuns(recorded, build.id, all);
      await attempts.reattach(build, all);
      await merging.reattach(build, all);
    },
    async close(build, end) {
      await merging.close(build, end);
      await attempts.close(build, end);
      // Sandboxes of a dead process that nothing refers to.
      await endAllButMain(provider, build.id);
      await dropBranches(await repositories.of(build.id), {
        merges: await readAll(store, build.id, "merges"),
        candidates: await readAll(store, build.id, "candidates"),
        attempts: await readAll(store, build.id, "attempts"),
      });
      await results.close(build.id);
      await remote?.noteEnd(build);
      // Not awaited: a remote may be slow.
      void remote?.finish(build.id);
    },
    heardAtMs: attempts.heardAtMs,
  };
  return {
    work,
    provider,
    dummiesFor: ({ id }, planning) =>
      createDummies({ provider: recorded, labels: { build: id, purpose: "checker", planning } }),
    makeMain: attempts.makeMain,
    gitOf: repositories.of,
    previews,
    passesWithout: gates.passes,
    async [Symbol.asyncDispose]() {
      await merging[Symbol.asyncDispose]();
      await results[Symbol.asyncDispose]();
      await remote?.[Symbol.asyncDispose]();
      await attempts[Symbol.asyncDispose]();
      await previews[Symbol.asyncDispose]();
      await workspaces[Symbol.asyncDispose]();
      await paid[Symbol.asyncDispose]();
    },
  };
}
