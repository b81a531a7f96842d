import type { TaskRun } from "@slipway/agent-host";
import { type Finding, hasCode, type Offered, printable, SlipwayError } from "@slipway/contract";
import type { NewEvent } from "@slipway/engine";
import { CandidateRefused } from "../repository/quarantine/refusal.ts";
import { type Taken, usualTakeLimits } from "../repository/quarantine/take.ts";
import type { BuildRepository } from "../repository/repository.ts";
import type { Kept } from "./kept.ts";
import { candidateIdOf } from "./names.ts";
import { patiently } from "./patiently.ts";
import { candidateOffered, candidateRefused, type Life } from "./reports.ts";

type Repository = Pick<BuildRepository, "take" | "takeOpen" | "discard" | "main" | "treeOf" | "isAncestor">;

export interface TakenOffer {
  readonly report: NewEvent;
  /** Undefined: it was refused, or there is nothing in it. */
  readonly taken: Taken | undefined;
  /** How many the sandbox has sent. */
  readonly bytes: number;
}

export interface TakeOfferOptions {
  readonly mostBytes: number;
  readonly signal: AbortSignal;
}

const gate = "offer";
const maxFindings = 16;
const maxTextCharacters = 2000;
const waitsMs = [200, 1000, 5000];

/**
 * Takes what a run offers into the build's repository, or refuses it with what is wrong. What counts is what was taken,
 * whatever the run says of it; where nothing is in it that main has not, that is the main it is on. Fails when the sandbox is gone, and with `out_of_disk` when there is no room for it here.
 */
export async function takeOffer(
  repository: Repository,
  run: Pick<TaskRun, "readOffer">,
  life: Life & Pick<Kept, "order">,
  offered: Offered,
  { mostBytes, signal }: TakeOfferOptions,
): Promise<TakenOffer> {
  let bytes = 0;
  const read = async function* () {
    for await (const piece of run.readOffer(offered.number)) {
      bytes += piece.byteLength;
      yield piece;
    }
  };
  const id = candidateIdOf(life.id, life.respawn, offered.number);
  const refused = (findings: readonly Finding[]) => ({
    report: candidateRefused(life, offered.number, findings),
    taken: undefined,
    bytes,
  });
  const nothingNew = async (base: string) => ({
    report: candidateOffered(life, offered.number, { commit: base, tree: await repository.treeOf(base) }),
    taken: undefined,
    bytes,
  });
  try {
    const base = await baseOf(repository, life.order.base, offered.main);
    if (offered.commit === base && offered.changed === 0) return await nothingNew(base);
    const limits = { bundleBytes: Math.min(usualTakeLimits.bundleBytes, mostBytes) };
    const options = { id, ref: `refs/heads/${life.order.branch}`, base, limits, signal };
    const taken = await patiently(() => repository.take(read(), options), signal, waitsMs);
    const findings = findingsOf(taken);
    if (findings.length === 0 && taken.changes.some(isWork))
      return { report: candidateOffered(life, offered.number, taken), taken, bytes };
    await repository.discard(id);
    return taken.changes.some(isWork) ? refused(findings) : await nothingNew(base);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof CandidateRefused) return refused(error.findings.slice(0, maxFindings).map(toFinding));
    if (hasCode(error, "candidate_exists"))
      return refused([about("It is another commit than was offered before under the same number.")]);
    if (error instanceof SlipwayError && missing.has(error.code)) return refused([about("There is no bundle of it.")]);
    if (!(error instanceof SlipwayError) || notItsOwn.has(error.code)) throw error;
    return refused([about(`It could not be taken in: ${error.message}`)]);
  }
}

/**
 * Takes the branch of a run that has not offered it yet, and answers its commit, or undefined when it can not be taken. Fails
 * when the sandbox is gone.
 */
export async function takeBranch(
  repository: Pick<Repository, "takeOpen">,
  run: Pick<TaskRun, "readBranch">,
  { id, order }: Pick<Kept, "id" | "order">,
  { mostBytes, signal }: TakeOfferOptions,
): Promise<{ readonly taken: string | undefined; readonly bytes: number }> {
  let bytes = 0;
  const read = async function* () {
    for await (const piece of run.readBranch()) {
      bytes += piece.byteLength;
      yield piece;
    }
  };
  const limits = { bundleBytes: Math.min(usualTakeLimits.bundleBytes, mostBytes) };
  const options = { attempt: id, ref: `refs/heads/${order.branch}`, limits, signal };
  try {
    const { commit } = await repository.takeOpen(read(), options);
    return { taken: commit, bytes };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof SlipwayError) || gone.has(error.code)) throw error;
    return { taken: undefined, bytes };
  }
}

/** The sandbox's end tells more. */
const gone: ReadonlySet<string> = new Set([
  ...["aborted", "provider_unavailable", "sandbox_ended", "sandbox_not_found", "sandbox_not_running"],
]);
/** What no agent can mend: that, or a full disk of this machine. */
const notItsOwn: ReadonlySet<string> = new Set([...gone, "out_of_disk"]);
const missing: ReadonlySet<string> = new Set(["file_not_found", "not_a_file", "not_a_directory", "file_forbidden"]);

/** The main that the offer is on, if it ever was main; else what the attempt began with. */
async function baseOf(repository: Repository, known: string, claimed: string): Promise<string> {
  try {
    return (await repository.isAncestor(claimed, await repository.main())) ? claimed : known;
  } catch (error) {
    if (hasCode(error, "commit_not_found")) return known;
    throw error;
  }
}

function findingsOf({ changes, secrets, binaries }: Taken): Finding[] {
  const own = changes.filter(({ path, change }) => path.startsWith(".slipway/") && change !== "deleted");
  const found = [
    ...secrets.map(({ path, kind, line }) => ({
      ...about(`It looks like a secret (${kind}). Take it out; the app reads secrets from its environment.`, path),
      ...(line !== null && { line }),
    })),
    ...binaries.map(({ path, bytes }) =>
      about(`It is a binary of ${bytes} bytes. Take it out, or have the build make it.`, path),
    ),
    ...own.map(({ path }) => about("It is there for agents, and no part of the app. Take it out of git.", path)),
  ];
  return found.slice(0, maxFindings);
}

/** The lock file of an app that has none yet is what its install writes. */
function isWork({ path, change }: Taken["changes"][number]): boolean {
  return path !== "package-lock.json" || change !== "added";
}

function toFinding({ path, message }: { readonly path: string | null; readonly message: string }): Finding {
  return path === null ? about(message) : about(message, path);
}

function about(text: string, path?: string): Finding {
  const said = printable(text).slice(0, maxTextCharacters);
  return { gate, text: said, ...(path !== undefined && { file: printable(path).slice(0, 1024) }) };
}
