import { type BuildId, type Finding, type GateVerdict, hasCode, SlipwayError } from "@slipway/contract";
import type { GateWork, WorkingBuild } from "@slipway/engine";
import { buildProject, type OwnedSandbox, type Sandbox, type SandboxProvider, testProject } from "@slipway/sandbox";
import type { BuildRepository } from "../repository/repository.ts";
import { againstStep, findingOf, held } from "./findings.ts";
import { againstTests } from "./tests-kept.ts";

/** Runs of gates, in sandboxes where no agent has been. */
export interface Gates {
  /** Runs one gate on a commit. What the candidate does is a verdict; what breaks of ours is the verdict `error`. */
  run(
    build: WorkingBuild,
    run: GateWork,
    signal: AbortSignal,
  ): Promise<{ readonly verdict: GateVerdict; readonly findings: readonly Finding[] }>;
}

export interface GateParts {
  readonly provider: Pick<SandboxProvider, "create" | "get" | "list">;
  readonly workspaces: {
    open(
      build: WorkingBuild,
      commit: string,
      options: { purpose: string; labels?: Readonly<Record<string, string>>; signal?: AbortSignal },
    ): Promise<OwnedSandbox>;
  };
  readonly repositories: {
    of(build: BuildId): Promise<Pick<BuildRepository, "main" | "forkPoint" | "isAncestor" | "examine" | "text">>;
  };
}

interface Run {
  readonly build: WorkingBuild;
  readonly work: GateWork;
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
};

export function createGates(parts: GateParts): Gates {
  return {
    async run(build, work, signal) {
      const { gate } = work;
      const run = { build, work, signal, labels: { "gate-run": `${build.id}/${work.run}` } };
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
        return { verdict, findings: [findingOf(gate, message)] };
      }
    },
  };
}

/** Of a process that was killed in the middle of the same run. */
async function endLeftovers({ provider }: GateParts, labels: Run["labels"]): Promise<void> {
  for (const { id } of await provider.list({ labels })) await (await provider.get(id)).destroy();
}

type Look = (sandbox: Sandbox, run: Run) => Promise<readonly Finding[]>;

async function inWorkspace(parts: GateParts, run: Run, look: Look): Promise<readonly Finding[]> {
  const { build, work, labels, signal } = run;
  await using sandbox = await parts.workspaces.open(build, work.commit, { purpose: "gate", labels, signal });
  try {
    return await look(sandbox, run);
  } catch (error) {
    signal.throwIfAborted();
    const { reason } = await sandbox.info().catch(() => ({ reason: "requested" }));
    if (reason !== "out_of_memory" && reason !== "out_of_disk") throw error;
    const what = reason === "out_of_memory" ? "memory" : "disk space";
    return [findingOf(work.gate, `It has used up all the ${what} that its sandbox has.`)];
  }
}

const buildsWell: Look = async (sandbox, { work, signal }) =>
  againstStep(work.gate, await buildProject(sandbox, { signal }));

const testsWell: Look = async (sandbox, { work, signal }) =>
  againstStep(work.gate, await testProject(sandbox, { signal }));

async function testsKept({ repositories }: GateParts, { build, work, signal }: Run): Promise<readonly Finding[]> {
  const repository = await repositories.of(build.id);
  const base = work.base ?? (await repository.forkPoint(await repository.main(), work.commit));
  if (base === undefined) return [];
  const [before, after, examined] = await Promise.all([
    repository.text(base, "package.json"),
    repository.text(work.commit, "package.json"),
    repository.examine(base, work.commit, { signal }),
  ]);
  return againstTests(work.gate, { before, after, examined });
}
