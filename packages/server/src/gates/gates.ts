import { type BuildId, type Finding, type GateVerdict, hasCode, SlipwayError } from "@slipway/contract";
import type { GateWork, Store, WorkingBuild } from "@slipway/engine";
import {
  buildProject,
  devServerPort,
  type OwnedSandbox,
  type Sandbox,
  type SandboxProvider,
  testProject,
} from "@slipway/sandbox";
import { isFullDisk } from "../full-disk.ts";
import type { BuildRepository } from "../repository/repository.ts";
import { isTest } from "../repository/tests-changed.ts";
import { type AllChecked, type Checked, type Checking, checkAll } from "./check-all.ts";
import { type Demand, dueOf, readDemands, tasksWithin } from "./demands.ts";
import { againstStep, findingOf, held, shown } from "./findings.ts";
import { lacksEvidence } from "./on-main.ts";
import type { TestSetup } from "./test-scripts.ts";
import { againstTests } from "./tests-kept.ts";

export interface GateEnd {
  readonly verdict: GateVerdict;
  readonly findings: readonly Finding[];
  /** Of an error: what passes by itself, and is not the candidate's. */
  readonly trouble?: string;
}

/** Runs of gates, in sandboxes where no agent has been. */
export interface Gates {
  /** Runs one gate on a commit. What the candidate does is a verdict; what breaks of ours is the verdict `error`. */
  run(build: WorkingBuild, run: GateWork, signal: AbortSignal): Promise<GateEnd>;
  /** What all criteria's and workflows' checks say of a commit. Fails when they could not be made. */
  satisfaction(build: WorkingBuild, commit: string, signal: AbortSignal): Promise<readonly Checked[]>;
}

export interface GateParts extends Pick<Checking, "readyMs" | "checkMs"> {
  readonly store: Pick<Store, "builds">;
  readonly provider: Pick<SandboxProvider, "create" | "get" | "list">;
  readonly workspaces: {
    open(
      build: WorkingBuild,
      commit: string,
      options: { purpose: string; ports?: number[]; labels?: Readonly<Record<string, string>>; signal?: AbortSignal },
    ): Promise<OwnedSandbox>;
  };
  readonly repositories: {
    of(
      build: BuildId,
    ): Promise<Pick<BuildRepository, "main" | "forkPoint" | "isAncestor" | "examine" | "read" | "changedFiles">>;
  };
}

interface Run {
  readonly build: WorkingBuild;
  readonly work: Pick<GateWork, "gate" | "task" | "ahead" | "base" | "commit">;
  readonly labels: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

type Judge = (parts: GateParts, run: Run) => Promise<readonly Finding[]>;

/** What each gate does. `compatibility` is not here: it is known from test merges. */
const judges: Readonly<Record<string, Judge>> = {
  build: async (parts, run) => await inWorkspace(parts, run, buildsWell),
  async tests(parts, run) {
    const weakened = await testsKept(parts, run);
    if (weakened.length > 0) return weakened;
    return await inWorkspace(parts, run, testsWell);
  },
  intent: async (parts, run) => await intentMet(parts, run),
  async "main-test"(parts, run) {
    // What it was found to keep by itself may have been tests of an older main.
    const weakened = await testsKept(parts, run);
    if (weakened.length > 0) return weakened;
    // Each begins anew: code of the candidate that has run may have put other programs in place.
    const built = await inWorkspace(parts, run, buildsWell);
    if (built.length > 0) return built;
    const tested = await inWorkspace(parts, run, testsWell);
    return tested.length > 0 ? tested : await intentMet(parts, run);
  },
};

/** What keeps an app from being looked at and does not pass by itself: to wait for it would be to wait for ever. */
const lasting = ["install_failed", "invalid_settings", "component_missing", "image_build_failed"] as const;

const maxEvidenceCharacters = 2000;
const maxTroubleCharacters = 500;

export function createGates(parts: GateParts): Gates {
  return {
    async run(build, work, signal) {
      const { gate } = work;
      const run = { build, work, signal, labels: runLabels(build.id, work.run) };
      try {
        const judge = Object.hasOwn(judges, gate) ? judges[gate] : undefined;
        if (judge === undefined) throw new SlipwayError("invalid_request", `there is no gate ${gate} that runs`);
        await endLeftovers(parts, run.labels);
        const findings = await judge(parts, run);
        return { verdict: findings.length === 0 ? "passed" : "failed", findings: held(gate, findings) };
      } catch (error) {
        signal.throwIfAborted();
        const { message } = error as Error;
        const verdict = hasCode(error, "install_failed") ? "failed" : "error";
        const trouble = passesByItself(error) ? { trouble: shown(message, maxTroubleCharacters) } : {};
        return { verdict, findings: [findingOf(gate, message)], ...trouble };
      }
    },

    async satisfaction(build, commit, signal) {
      const demands = await readDemands(parts.store, build.id, signal);
      const labels = runLabels(build.id, "satisfaction");
      await endLeftovers(parts, labels);
      const work = { gate: "intent", task: "", ahead: [], base: null, commit };
      const seen = await checked(parts, { build, work, labels, signal }, demands).catch((error) => {
        signal.throwIfAborted();
        if (lasting.some((code) => hasCode(error, code))) return { failure: error.message };
        throw error;
      });
      if ("checked" in seen)
        return seen.checked.map((one) => ({ ...one, text: shown(one.text, maxEvidenceCharacters) }));
      const text = shown(`The app does not run. ${seen.failure}`, maxEvidenceCharacters);
      return demands.map(({ id }) => ({ id, satisfied: false, text }));
    },
  };
}

function passesByItself(error: unknown): boolean {
  return isFullDisk(error) || (error instanceof SlipwayError && error.retry === "later");
}

/** Of all sandboxes of one run. */
export function runLabels(build: BuildId, run: number | "satisfaction") {
  return { "gate-run": `${build}/${run}` };
}

/** Of a process that was killed in the middle of the same run. */
async function endLeftovers({ provider }: GateParts, labels: Run["labels"]): Promise<void> {
  for (const { id } of await provider.list({ labels })) await (await provider.get(id)).destroy();
}

type Look = (sandbox: Sandbox, run: Run) => Promise<readonly Finding[]>;

async function inWorkspace(parts: GateParts, run: Run, look: Look): Promise<readonly Finding[]> {
  const { build, work, labels, signal } = run;
  await using sandbox = await parts.workspaces.open(build, work.commit, { purpose: "gate", labels, signal });
  return await look(sandbox, run);
}

const buildsWell: Look = async (sandbox, { work, signal }) =>
  againstStep(work.gate, await buildProject(sandbox, { signal }));

const testsWell: Look = async (sandbox, { work, signal }) =>
  againstStep(work.gate, await testProject(sandbox, { signal }));

/** Criteria that are due: all tasks that serve them are the candidate's own or in the commit already. */
async function intentMet(parts: GateParts, run: Run): Promise<readonly Finding[]> {
  const { build, work, signal } = run;
  const repository = await parts.repositories.of(build.id);
  const within = await tasksWithin(parts.store, repository, build.id, work.commit);
  const all = new Set([...within, ...work.ahead, work.task]);
  const demands = await readDemands(parts.store, build.id, signal);
  // Of main itself all is looked at that the task serves, whoever else does: it is done only if that is there.
  const isMain = work.base === work.commit;
  const missing = isMain ? await lacksEvidence({ ...parts, ...run, ...work, repository }, demands) : undefined;
  if (missing !== undefined) return [findingOf(work.gate, missing)];
  const isServed = ({ servedBy }: Demand) => isMain && servedBy.has(work.task);
  const due = [...new Set([...dueOf(demands, all), ...demands.filter(isServed)])];
  if (due.length === 0) return [];
  const seen = await checked(parts, run, due);
  if ("failure" in seen) return [findingOf(work.gate, `The app does not run. ${seen.failure}`)];
  return seen.checked
    .filter(({ satisfied }) => !satisfied)
    .map(({ id, text }) => {
      const statement = due.find((demand) => demand.id === id)?.statement;
      return findingOf(work.gate, `This does not hold yet (${id}): ${statement}\n\n${text}`);
    });
}

async function checked(parts: GateParts, run: Run, demands: readonly Demand[]): Promise<AllChecked> {
  const { build, work, labels, signal } = run;
  const options = { purpose: "gate", ports: [devServerPort], labels, signal };
  await using sandbox = await parts.workspaces.open(build, work.commit, options);
  const ofChecker = { ...labels, build: build.id, purpose: "checker" };
  return await checkAll({ ...parts, sandbox, labels: ofChecker, signal }, demands);
}

async function testsKept({ repositories }: GateParts, { build, work, signal }: Run): Promise<readonly Finding[]> {
  const repository = await repositories.of(build.id);
  const base = work.base ?? (await repository.forkPoint(await repository.main(), work.commit));
  if (base === undefined) return [];
  const [before, after, examined, changes] = await Promise.all([
    testsOf(repository, base),
    testsOf(repository, work.commit),
    repository.examine(base, work.commit, { signal }),
    repository.changedFiles(base, work.commit, { signal }),
  ]);
  const changed = changes.filter(({ change }) => change !== "deleted").map(({ path }) => path);
  return againstTests(work.gate, { before, after, changed, examined });
}

async function testsOf(repository: Pick<BuildRepository, "read">, commit: string): Promise<TestSetup> {
  let hasTests = false;
  const names = new Set<string>();
  const files = await repository.read(commit, (path) => {
    hasTests ||= isTest(path);
    const parts = path.split("/");
    names.add(parts[0] ?? "");
    return parts.at(-1) === "package.json" && !parts.includes("node_modules");
  });
  return { names, manifests: new Map([...files].map(([path, bytes]) => [path, bytes.toString("utf8")])), hasTests };
}
