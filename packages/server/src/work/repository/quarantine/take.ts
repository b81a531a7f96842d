import { hasCode, SlipwayError } from "@slipway/contract";
import { type ChangedFile, changedFiles } from "../changes.ts";
import type { Git } from "../git.ts";
import { line, lines } from "../objects.ts";
import { checkTree, type TreeLimits, usualTreeLimits } from "../tree.ts";
import { openBundle } from "./bundle.ts";
import { type Examined, type ExamineLimits, examine, usualExamineLimits } from "./examine.ts";
import type { Quarantine } from "./quarantine.ts";
import { asRefusal, CandidateRefused, refuse } from "./refusal.ts";

export interface BundleLimits extends TreeLimits {
  readonly bundleBytes: number;
  readonly commits: number;
  /** For the whole transfer, from the first byte. */
  readonly timeMs: number;
}

export interface TakeLimits extends BundleLimits {
  readonly examine: ExamineLimits;
}

export const usualTakeLimits: TakeLimits = {
  ...usualTreeLimits,
  bundleBytes: 256 * 1024 ** 2,
  commits: 10_000,
  timeMs: 300_000,
  examine: usualExamineLimits,
};

/** A sandbox's commit, now in the build's repository. */
export interface Taken extends Examined {
  readonly commit: string;
  readonly tree: string;
  /** Commits that neither the base nor main has. */
  readonly commits: number;
  readonly changes: readonly ChangedFile[];
  /** Equal to the base. */
  readonly empty: boolean;
}

type Received = Pick<Taken, "commit" | "tree">;

/** Takes a bundle's objects into the quarantine if its one commit passes all checks. */
export async function receive(
  quarantine: Quarantine,
  bundle: AsyncIterable<Uint8Array>,
  { ref, known, limits, signal }: ReceiveOptions,
): Promise<Received> {
  const deadline = AbortSignal.timeout(limits.timeMs);
  const both = { signal: signal === undefined ? deadline : AbortSignal.any([deadline, signal]) };
  try {
    const { needs, tip, pack } = await openBundle(bundle, { ref, mostBytes: limits.bundleBytes, ...both });
    const { git } = quarantine;
    return await asRefusal("git refuses the bundle", async () => {
      await checkNeeds(git, needs, known, both);
      const args = ["index-pack", "--stdin", "--fix-thin", "--strict", `--max-input-size=${limits.bundleBytes}`];
      await git.run(args, { input: pack, timeMs: limits.timeMs, ...both });
      const named = await git.run(["rev-parse", `${tip}^{commit}`, `${tip}^{tree}`], both);
      const [commit = "", tree = ""] = line(named).split("\n");
      if (commit !== tip) throw refuse("the bundle's ref is not a commit");
      const findings = await checkTree(git, tree, limits, both);
      if (findings.length > 0) throw new CandidateRefused(findings);
      return { commit, tree };
    });
  } catch (error) {
    if (!hasCode(error, "aborted") || signal?.aborted) throw error;
    throw refuse(`the bundle took more than ${limits.timeMs} ms`);
  }
}

interface ReceiveOptions {
  readonly ref: string;
  /** Commits that the bundle may build on. */
  readonly known: readonly string[];
  readonly limits: BundleLimits;
  readonly signal?: AbortSignal | undefined;
}

/** A bundle may build only on what its sandbox was given, not on commits whose names it guessed. */
async function checkNeeds(
  git: Git,
  needs: readonly string[],
  known: readonly string[],
  options: { signal: AbortSignal },
) {
  if (needs.length === 0) return;
  const input = lines([...needs, ...known.map((name) => `^${name}`)]);
  const count = line(await git.run(["rev-list", "--count", "--max-count=1", "--stdin"], { ...options, input }));
  if (count !== "0") throw refuse("the bundle needs commits that are not in main's history");
}

interface TakeSource {
  /** Left out: where it left main. */
  readonly base?: string | undefined;
  readonly main: string;
  readonly limits: TakeLimits;
  readonly signal?: AbortSignal | undefined;
}

/** Examines a commit in quarantine. Refuses one that does not descend from its base. */
export async function look(git: Git, { commit, tree }: Received, source: TakeSource): Promise<Taken> {
  const { main, limits, signal } = source;
  return await asRefusal("git cannot read it", async () => {
    const base = source.base ?? (await leftMain(git, main, commit, signal));
    const ancestor = await git.run(["merge-base", "--is-ancestor", base, commit], { expected: [0, 1], signal });
    if (ancestor.exitCode === 1) throw refuse(`the commit does not descend from its base ${base}`);
    const counting = ["rev-list", "--count", `--max-count=${limits.commits + 1}`, commit, `^${base}`, `^${main}`];
    const commits = Number(line(await git.run(counting, { signal })));
    if (commits > limits.commits) throw refuse(`the offer has more than ${limits.commits} commits`);
    const changes = await changedFiles(git, base, tree, { signal });
    return {
      commit,
      tree,
      commits,
      changes,
      empty: changes.length === 0,
      ...(await examine(git, changes, limits.examine, { signal })),
    };
  });
}

async function leftMain(git: Git, main: string, commit: string, signal: AbortSignal | undefined): Promise<string> {
  const found = await git.run(["merge-base", main, commit], { expected: [0, 1], signal });
  if (found.exitCode === 1) throw refuse("the commit has no common history with main");
  return line(found);
}

export function checkRef(ref: string): void {
  if (/^refs\/[A-Za-z0-9][\w.-]*(\/[A-Za-z0-9][\w.-]*)+$/.test(ref) && ref.length < 200) return;
  throw new SlipwayError("invalid_request", `${JSON.stringify(ref.slice(0, 200))} is not the name of a ref`);
}
