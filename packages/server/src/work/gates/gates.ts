import {
  type BuildId,
  type Finding,
  type GateResult,
  type GateVerdict,
  hasCode,
  SlipwayError,
} from "@slipway/contract";
import type { GateWork, Store, WorkingBuild } from "@slipway/engine";
import { buildProject, devServerPort, type OwnedSandbox, type SandboxProvider } from "@slipway/sandbox";
import { isFullDisk } from "../full-disk.ts";
import type { BuildRepository } from "../repository/repository.ts";
import type { WorkspaceOptions } from "../workspaces/workspaces.ts";
import { type AllChecked, type Checked, type Checking, checkAll } from "./check-all.ts";
import { type Demand, dueOf, readDemands, tasksWithin } from "./demands.ts";
import { evidenceTool, testWithEvidence } from "./evidence/collect.ts";
import { type Evidence, noEvidence } from "./evidence/evidence.ts";
import { createKeptEvidence, type KeptEvidence } from "./evidence/kept.ts";
import { againstStep, findingOf, held, shown } from "./findings.ts";
import { type Judged, nothingAgainst } from "./judged.ts";
import { lacksEvidence } from "./on-main.ts";
import { againstEvidence, againstSources, type Planned } from "./tests-kept.ts";

export interface GateEnd extends GateResult {
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
  now(): number;
  readonly store: Pick<Store, "builds">;
  readonly provider: Pick<SandboxProvider, "create" | "get" | "list">;
  readonly workspaces: {
    open(build: WorkingBuild, commit: string, options: WorkspaceOptions): Promise<OwnedSandbox>;
  };
  readonly repositories: {
    of(
      build: BuildId,
    ): Promise<Pick<BuildRepository, "main" | "treeOf" | "forkPoint" | "isAncestor" | "examine" | "changedFiles">>;
  };
}

interface Run {
  readonly build: WorkingBuild;
  readonly work: Pick<GateWork, "gate" | "task" | "ahead" | "base" | "commit">;
  readonly labels: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

type Judge = (parts: GateParts, run: Run, kept: KeptEvidence) => Promise<Judged>;

/** What each gate does. `compatibility` is not here: it is known from test merges. */
const judges: Readonly<Record<string, Judge>> = {
  build: buildsWell,
  tests: testsWell,
  intent: intentMet,
  async "main-test"(parts, run, kept) {
    // Each begins anew: code of the candidate that has run may have put other programs in place.
    const built = await buildsWell(parts, run);
    if (built.against.length > 0) return built;
    // What it was found to keep by itself may have been tests of an older main.
    const tested = await testsWell(parts, run, kept);
    if (tested.against.length > 0) return tested;
    return { ...(await intentMet(parts, run)), notes: tested.notes };
  },
};

/** What keeps an app from being looked at and does not pass by itself: to wait for it would be to wait for ever. */
const lasting = ["install_failed", "invalid_settings", "component_missing", "image_build_failed"] as const;

const maxEvidenceCharacters = 2000;
const maxTroubleCharacters = 500;

export function createGates(parts: GateParts): Gates {
  const kept = createKeptEvidence();
  return {
    async run(build, work, signal) {
      const { gate } = work;
      const run = { build, work, signal, labels: runLabels(build.id, work.run) };
      const startedAtMs = parts.now();
      const ended = (verdict: GateVerdict, findings: Finding[], seen: GateResult["parts"] = []): GateEnd => {
        const durationMs = parts.now() - startedAtMs;
        // No gate asks a model by now: none of them spends.
        return { verdict, score: null, parts: seen, findings, artefacts: [], durationMs, costMicroUsd: 0 };
      };
      try {
        const judge = Object.hasOwn(judges, gate) ? judges[gate] : undefined;
        if (judge === undefined) throw new SlipwayError("invalid_request", `there is no gate ${gate} that runs`);
        await endLeftovers(parts, run.labels);
        const { against, notes, parts: seen } = await judge(parts, run, kept);
        if (against.length > 0) return ended("failed", held(gate, against), seen);
        return ended("passed", held(gate, notes), seen);
      } catch (error) {
        signal.throwIfAborted();
        const { message } = error as Error;
        const verdict = hasCode(error, "install_failed") ? "failed" : "error";
        const trouble = passesByItself(error) ? { trouble: shown(message, maxTroubleCharacters) } : {};
        return { ...ended(verdict, [findingOf(gate, message)]), ...trouble };
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

async function buildsWell(parts: GateParts, { build, work, labels, signal }: Run): Promise<Judged> {
  await using sandbox = await parts.workspaces.open(build, work.commit, { purpose: "gate", labels, signal });
  return { against: againstStep(work.gate, await buildProject(sandbox, { signal })), notes: [] };
}

/** They pass, and so do those that were there before: by what their runners report, not by what a script says in the end. */
async function testsWell(parts: GateParts, run: Run, kept: KeptEvidence): Promise<Judged> {
  const { build, work, signal } = run;
  const repository = await parts.repositories.of(build.id);
  const base = work.base ?? (await repository.forkPoint(await repository.main(), work.commit));
  const planned = (await parts.store.builds.records(build.id, "plans"))
    .flatMap(({ tasks }) => tasks)
    .find(({ id }) => id === work.task);
  const sources = base === undefined ? nothingAgainst : await sourcesKept(repository, { ...run, base }, planned);
  if (sources.against.length > 0) return sources;
  const { against, evidence } = await runTests(parts, run, work.commit);
  if (against.length > 0) return { against, notes: [] };
  const keyOf = async (commit: string) => `${build.id} ${await repository.treeOf(commit)}`;
  const own = await keyOf(work.commit);
  const before =
    base === undefined ? noEvidence : await kept.of(await keyOf(base), () => testsOf(parts, run, base), signal);
  const ran =
    evidence === null && before.tests.length === 0
      ? nothingAgainst
      : againstEvidence(work.gate, before, evidence ?? noEvidence, planned);
  // The next one's base, most likely.
  if (ran.against.length === 0) kept.keep(own, evidence ?? noEvidence);
  return { against: ran.against, notes: [...ran.notes, ...sources.notes] };
}

async function sourcesKept(
  repository: Pick<BuildRepository, "examine" | "changedFiles">,
  { work, base, signal }: Run & { readonly base: string },
  planned: Planned | undefined,
): Promise<Judged> {
  const [examined, changes] = await Promise.all([
    repository.examine(base, work.commit, { signal }),
    repository.changedFiles(base, work.commit, { signal }),
  ]);
  return againstSources(work.gate, examined, changes, planned);
}

/** Null: there are none. */
async function runTests(
  parts: GateParts,
  { build, work, labels, signal }: Run,
  commit: string,
): Promise<{ readonly against: readonly Finding[]; readonly evidence: Evidence | null }> {
  const options = { purpose: "gate", labels, signal, tools: [evidenceTool] };
  await using sandbox = await parts.workspaces.open(build, commit, options);
  const tested = await testWithEvidence(sandbox, { signal });
  return { against: againstStep(work.gate, tested?.step ?? null), evidence: tested?.evidence ?? null };
}

/** What passed before the candidate. A commit whose packages can not be installed has no tests that pass. */
async function testsOf(parts: GateParts, run: Run, base: string): Promise<Evidence> {
  try {
    return (await runTests(parts, run, base)).evidence ?? noEvidence;
  } catch (error) {
    if (hasCode(error, "install_failed")) return noEvidence;
    throw error;
  }
}

/** Criteria that are due: all tasks that serve them are the candidate's own or in the commit already. */
async function intentMet(parts: GateParts, run: Run): Promise<Judged> {
  const { build, work, signal } = run;
  const repository = await parts.repositories.of(build.id);
  const within = await tasksWithin(parts.store, repository, build.id, work.commit);
  const all = new Set([...within, ...work.ahead, work.task]);
  const demands = await readDemands(parts.store, build.id, signal);
  // Of main itself all is looked at that the task serves, whoever else does: it is done only if that is there.
  const isMain = work.base === work.commit;
  const missing = isMain ? await lacksEvidence({ ...parts, ...run, ...work, repository }, demands) : undefined;
  if (missing !== undefined) return { against: [findingOf(work.gate, missing)], notes: [] };
  const isServed = ({ servedBy }: Demand) => isMain && servedBy.has(work.task);
  const due = [...new Set([...dueOf(demands, all), ...demands.filter(isServed)])];
  if (due.length === 0) return nothingAgainst;
  const seen = await checked(parts, run, due);
  if ("failure" in seen) return { against: [findingOf(work.gate, `The app does not run. ${seen.failure}`)], notes: [] };
  const against = seen.checked
    .filter(({ satisfied }) => !satisfied)
    .map(({ id, text }) => {
      const statement = due.find((demand) => demand.id === id)?.statement;
      return findingOf(work.gate, `This does not hold yet (${id}): ${statement}\n\n${text}`);
    });
  const looked = seen.checked.map(({ id, satisfied }) => ({ name: id, verdict: verdictOf(satisfied), score: null }));
  return { against, notes: [], parts: looked };
}

function verdictOf(satisfied: boolean): GateVerdict {
  return satisfied ? "passed" : "failed";
}

async function checked(parts: GateParts, run: Run, demands: readonly Demand[]): Promise<AllChecked> {
  const { build, work, labels, signal } = run;
  const options = { purpose: "gate", ports: [devServerPort], labels, signal };
  await using sandbox = await parts.workspaces.open(build, work.commit, options);
  const ofChecker = { ...labels, build: build.id, purpose: "checker" };
  return await checkAll({ ...parts, sandbox, labels: ofChecker, signal }, demands);
}
