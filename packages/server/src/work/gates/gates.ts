import {
  type BuildId,
  type Check,
  type Finding,
  type GateResult,
  type GateVerdict,
  hasCode,
  SlipwayError,
} from "@slipway/contract";
import type { GateWork, Store, WorkingBuild } from "@slipway/engine";
import { buildProject, devServerPort, type OwnedSandbox, type SandboxProvider } from "@slipway/sandbox";
import { isFullDisk } from "../full-disk.ts";
import { isLasting } from "../lasting.ts";
import type { BuildRepository } from "../repository/repository.ts";
import type { WorkspaceOptions } from "../workspaces/workspaces.ts";
import { type AllChecked, type Checked, type Checking, checkAll } from "./checks/check-all.ts";
import { type Demand, dueOf, lacksEvidence, readDemands, tasksWithin, type Wanted } from "./demands.ts";
import { evidenceTool, testWithEvidence } from "./evidence/collect.ts";
import { type Evidence, noEvidence } from "./evidence/evidence.ts";
import { createKeptEvidence, type KeptEvidence } from "./evidence/kept.ts";
import { againstStep, findingOf, held, type Judged, nothingAgainst, shown } from "./findings.ts";
import { againstEvidence, againstSources } from "./tests-kept.ts";

export interface GateEnd extends GateResult {
  /** With verdict `error`: a cause outside the candidate that goes away by itself. */
  readonly trouble?: string;
}

/** Runs gates in sandboxes that no agent has used. */
export interface Gates {
  /** Runs one gate on a commit. A failure on our side gives the verdict `error`. */
  run(build: WorkingBuild, run: GateWork, signal: AbortSignal): Promise<GateEnd>;
  /** Makes the checks of all criteria and workflows on a commit. Throws if they could not be made. */
  satisfaction(build: WorkingBuild, commit: string, signal: AbortSignal): Promise<readonly Omit<Checked, "failedAt">[]>;
  /** Whether the app of a commit passes a check. One that does not run passes none. */
  passes(
    build: WorkingBuild,
    on: { commit: string; dispute: number },
    check: Check,
    signal: AbortSignal,
  ): Promise<boolean>;
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

/** What each gate does. `compatibility` is missing: its verdict comes from test merges. */
const judges: Readonly<Record<string, Judge>> = {
  build: buildsWell,
  tests: testsWell,
  intent: intentMet,
  async "main-test"(parts, run, kept) {
    // Each part uses a new sandbox: candidate code that has run may have replaced programs.
    const built = await buildsWell(parts, run);
    if (built.against.length > 0) return built;
    // The candidate's own tests gate may have compared with an older main.
    const tested = await testsWell(parts, run, kept);
    if (tested.against.length > 0) return tested;
    return { ...(await intentMet(parts, run)), notes: tested.notes };
  },
};

const maxEvidenceCharacters = 2000;
const maxTroubleCharacters = 500;

export function createGates(parts: GateParts): Gates {
  const kept = createKeptEvidence();
  /** Makes checks on a commit for a purpose of which a build has one at a time. */
  const look = async (
    build: WorkingBuild,
    commit: string,
    purpose: Purpose,
    wanted: Wanted,
    signal: AbortSignal,
  ): Promise<AllChecked> => {
    const labels = runLabels(build.id, purpose);
    await endLeftovers(parts.provider, labels);
    const work = { gate: "intent", task: "", ahead: [], base: null, commit };
    return await checked(parts, { build, work, labels, signal }, wanted).catch((error) => {
      signal.throwIfAborted();
      if (isLasting(error)) return { failure: error.message };
      throw error;
    });
  };
  return {
    async run(build, work, signal) {
      const { gate } = work;
      const run = { build, work, signal, labels: runLabels(build.id, work.run) };
      const startedAtMs = parts.now();
      const ended = (verdict: GateVerdict, findings: Finding[], seen: GateResult["parts"] = []): GateEnd => {
        const durationMs = parts.now() - startedAtMs;
        // No gate asks a model yet, so the cost is 0.
        return { verdict, score: null, parts: seen, findings, artefacts: [], durationMs, costMicroUsd: 0 };
      };
      try {
        const judge = Object.hasOwn(judges, gate) ? judges[gate] : undefined;
        if (judge === undefined) throw new SlipwayError("invalid_request", `unknown gate ${gate}`);
        await endLeftovers(parts.provider, run.labels);
        const { against, notes, parts: seen } = await judge(parts, run, kept);
        if (against.length > 0) return ended("failed", held(gate, against), seen);
        return ended("passed", held(gate, notes), seen);
      } catch (error) {
        signal.throwIfAborted();
        const { message } = error as Error;
        const verdict = hasCode(error, "install_failed") ? "failed" : "error";
        const passesByItself =
          isFullDisk(error) ||
          // The build pauses for it.
          hasCode(error, "budget_exhausted") ||
          (error instanceof SlipwayError && error.retry === "later");
        const trouble = passesByItself && { trouble: shown(message, maxTroubleCharacters) };
        return { ...ended(verdict, [findingOf(gate, message)]), ...trouble };
      }
    },

    async satisfaction(build, commit, signal) {
      const wanted = await readDemands(parts.store, build.id, signal);
      const seen = await look(build, commit, "satisfaction", wanted, signal);
      if ("checked" in seen)
        return seen.checked.map(({ id, satisfied, text }) => ({
          id,
          satisfied,
          text: shown(text, maxEvidenceCharacters),
        }));
      const text = shown(`The app does not run. ${seen.failure}`, maxEvidenceCharacters);
      return wanted.demands.map(({ id }) => ({ id, satisfied: false, text }));
    },

    async passes(build, { commit, dispute }, check, signal) {
      const { surface } = await readDemands(parts.store, build.id, signal);
      const demand = { id: check.proves, statement: "", checks: [check], tasks: new Set(""), servedBy: new Set("") };
      const seen = await look(build, commit, `dispute-${dispute}`, { surface, demands: [demand] }, signal);
      return "checked" in seen && seen.checked.every(({ satisfied }) => satisfied);
    },
  };
}

/** Of a look that is no run of a gate. */
type Purpose = "satisfaction" | `dispute-${number}`;

/** Labels of all sandboxes of one run. */
export function runLabels(build: BuildId, run: number | Purpose) {
  return { "gate-run": `${build}/${run}` };
}

/** Destroys sandboxes left by a process that was killed during the same run. */
export async function endLeftovers(
  provider: Pick<SandboxProvider, "get" | "list">,
  labels: Run["labels"],
): Promise<void> {
  for (const { id } of await provider.list({ labels })) await (await provider.get(id)).destroy();
}

/** The labels of a sandbox of a run, with what its cost counts for. */
function paidBy({ labels, work: { gate, task } }: Run): Run["labels"] {
  return { ...labels, gate, ...(task !== "" && { task }) };
}

async function buildsWell(parts: GateParts, run: Run): Promise<Judged> {
  const { build, work, signal } = run;
  const options = { purpose: "gate", labels: paidBy(run), signal };
  await using sandbox = await parts.workspaces.open(build, work.commit, options);
  return { against: againstStep(work.gate, await buildProject(sandbox, { signal })), notes: [] };
}

/** All tests pass, including those of the base, judged by the test runners' reports and not just the exit code. */
async function testsWell(parts: GateParts, run: Run, kept: KeptEvidence): Promise<Judged> {
  const { build, work, signal } = run;
  const repository = await parts.repositories.of(build.id);
  const base = work.base ?? (await repository.forkPoint(await repository.main(), work.commit));
  const planned = (await parts.store.builds.records(build.id, "plans"))
    .flatMap(({ tasks }) => tasks)
    .find(({ id }) => id === work.task);
  const sources =
    base === undefined
      ? nothingAgainst
      : againstSources(
          work.gate,
          await repository.examine(base, work.commit, { signal }),
          await repository.changedFiles(base, work.commit, { signal }),
          planned,
        );
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
  // Most likely the base of the next candidate.
  if (ran.against.length === 0) kept.keep(own, evidence ?? noEvidence);
  return { against: ran.against, notes: [...ran.notes, ...sources.notes] };
}

/** `evidence` is null if the project has no tests. */
async function runTests(
  parts: GateParts,
  run: Run,
  commit: string,
): Promise<{ readonly against: readonly Finding[]; readonly evidence: Evidence | null }> {
  const { build, work, signal } = run;
  const options = { purpose: "gate", labels: paidBy(run), signal, tools: [evidenceTool] };
  await using sandbox = await parts.workspaces.open(build, commit, options);
  const tested = await testWithEvidence(sandbox, { signal });
  return { against: againstStep(work.gate, tested?.step ?? null), evidence: tested?.evidence ?? null };
}

/** What passed on the base. A base whose packages cannot be installed has no passing tests. */
async function testsOf(parts: GateParts, run: Run, base: string): Promise<Evidence> {
  try {
    return (await runTests(parts, run, base)).evidence ?? noEvidence;
  } catch (error) {
    if (hasCode(error, "install_failed")) return noEvidence;
    throw error;
  }
}

/** Checks the due demands: all tasks that serve them are the candidate's own or in the commit already. */
async function intentMet(parts: GateParts, run: Run): Promise<Judged> {
  const { build, work, signal } = run;
  const repository = await parts.repositories.of(build.id);
  const within = await tasksWithin(parts.store, repository, build.id, work.commit);
  const all = new Set([...within, ...work.ahead, work.task]);
  const { surface, demands } = await readDemands(parts.store, build.id, signal);
  // A candidate that is main itself claims that its task is done: everything that the task serves is checked.
  const isMain = work.base === work.commit;
  const looked = { store: parts.store, repository, build: build.id, commit: work.commit };
  const missing = isMain ? await lacksEvidence(looked, work.task, demands, { signal }) : undefined;
  if (missing !== undefined) return { against: [findingOf(work.gate, missing)], notes: [] };
  const isServed = ({ servedBy }: Demand) => isMain && servedBy.has(work.task);
  const due = [...new Set([...dueOf(demands, all), ...demands.filter(isServed)])];
  if (due.length === 0) return nothingAgainst;
  const seen = await checked(parts, run, { surface, demands: due });
  if ("failure" in seen) return { against: [findingOf(work.gate, `The app does not run. ${seen.failure}`)], notes: [] };
  const against = seen.checked
    .filter(({ satisfied }) => !satisfied)
    .map(({ id, text }) => {
      const statement = due.find((demand) => demand.id === id)?.statement;
      return findingOf(work.gate, `This does not hold yet (${id}): ${statement}\n\n${text}`);
    });
  const verdictOf = (satisfied: boolean): GateVerdict => (satisfied ? "passed" : "failed");
  const checks = seen.checked.map(({ id, satisfied, failedAt }) => ({
    name: id,
    verdict: verdictOf(satisfied),
    score: null,
    failedAt,
  }));
  return { against, notes: [], parts: checks };
}

async function checked(parts: GateParts, run: Run, wanted: Wanted): Promise<AllChecked> {
  const { build, work, signal } = run;
  const options = { purpose: "gate", ports: [devServerPort], labels: paidBy(run), signal };
  await using sandbox = await parts.workspaces.open(build, work.commit, options);
  const ofChecker = { ...paidBy(run), build: build.id, purpose: "checker" };
  return await checkAll({ ...parts, sandbox, labels: ofChecker, signal }, wanted);
}
