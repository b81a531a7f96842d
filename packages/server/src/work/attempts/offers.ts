import type { TaskRun } from "@slipway/agent-host";
import { type Finding, hasCode, type Offered, printable, SlipwayError } from "@slipway/contract";
import type { NewEvent } from "@slipway/engine";
import { patiently } from "../planning/patience.ts";
import { CandidateRefused } from "../repository/quarantine/refusal.ts";
import { type Taken, usualTakeLimits } from "../repository/quarantine/take.ts";
import type { BuildRepository } from "../repository/repository.ts";
import type { Kept } from "./kept.ts";
import { candidateIdOf } from "./names.ts";
import { candidateOffered, candidateRefused, type Life } from "./reports.ts";

type Repository = Pick<BuildRepository, "take" | "takeOpen" | "discard" | "main" | "treeOf" | "isAncestor">;

export interface TakenOffer {
  readonly report: NewEvent;
  /** Undefined: refused or empty. */
  readonly taken: Taken | undefined;
  /** How many bytes the sandbox sent. */
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
 * Takes a run's offer into the build's repository, or refuses it with findings. Reports what was taken, whatever the run
 * claims; for an offer with nothing new, the main it is based on. Fails if the sandbox is gone, and with `out_of_disk` if
 * this machine's disk is full.
 */
export async function takeOffer(
  repository: Repository,
  run: Pick<TaskRun, "readOffer">,
  life: Life & Pick<Kept, "order">,
  offered: Offered,
  { mostBytes, signal }: TakeOfferOptions,
): Promise<TakenOffer> {
  const { number } = offered;
  const sent = counted(() => run.readOffer(number));
  const id = candidateIdOf(life.id, life.respawn, number);
  const told = (report: NewEvent, taken?: Taken) => ({ report, taken, bytes: sent.bytes });
  const refused = (findings: readonly Finding[]) => told(candidateRefused(life, number, findings));
  const nothingNew = async (base: string) =>
    told(candidateOffered(life, number, { commit: base, tree: await repository.treeOf(base) }));
  try {
    const base = await baseOf(repository, life.order.base, offered.main);
    if (offered.commit === base && offered.changed === 0) return await nothingNew(base);
    const options = { id, ref: `refs/heads/${life.order.branch}`, base, limits: limitsOf(mostBytes), signal };
    const taken = await patiently(() => repository.take(sent.read(), options), signal, waitsMs);
    const findings = findingsOf(taken);
    if (findings.length === 0 && taken.changes.some(isWork)) return told(candidateOffered(life, number, taken), taken);
    await repository.discard(id);
    return taken.changes.some(isWork) ? refused(findings) : await nothingNew(base);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof CandidateRefused) return refused(error.findings.slice(0, maxFindings).map(toFinding));
    if (hasCode(error, "candidate_exists"))
      return refused([about("An earlier offer under the same number was another commit.")]);
    if (error instanceof SlipwayError && missing.has(error.code)) return refused([about("The offer has no bundle.")]);
    if (!(error instanceof SlipwayError) || notItsOwn.has(error.code)) throw error;
    return refused([about(`Slipway cannot take the offer: ${error.message}`)]);
  }
}

/**
 * Takes the branch of a run before it is offered. Returns its commit, or undefined if it cannot be taken. Fails if the
 * sandbox is gone.
 */
export async function takeBranch(
  repository: Pick<Repository, "takeOpen">,
  run: Pick<TaskRun, "readBranch">,
  { id, order }: Pick<Kept, "id" | "order">,
  { mostBytes, signal }: TakeOfferOptions,
): Promise<{ readonly taken: string | undefined; readonly bytes: number }> {
  const sent = counted(() => run.readBranch());
  const options = { attempt: id, ref: `refs/heads/${order.branch}`, limits: limitsOf(mostBytes), signal };
  try {
    const { commit } = await repository.takeOpen(sent.read(), options);
    return { taken: commit, bytes: sent.bytes };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof SlipwayError) || gone.has(error.code)) throw error;
    return { taken: undefined, bytes: sent.bytes };
  }
}

/** Counts the bytes of each read of a bundle. */
function counted(open: () => AsyncIterable<Uint8Array>) {
  const sent = {
    bytes: 0,
    async *read() {
      for await (const piece of open()) {
        sent.bytes += piece.byteLength;
        yield piece;
      }
    },
  };
  return sent;
}

function limitsOf(mostBytes: number) {
  return { bundleBytes: Math.min(usualTakeLimits.bundleBytes, mostBytes) };
}

/** The sandbox's end says more. */
const gone: ReadonlySet<string> = new Set([
  ...["aborted", "provider_unavailable", "sandbox_ended", "sandbox_not_found", "sandbox_not_running"],
]);
/** Failures that no agent can fix: these, or a full disk of this machine. */
const notItsOwn: ReadonlySet<string> = new Set([...gone, "out_of_disk"]);
const missing: ReadonlySet<string> = new Set(["file_not_found", "not_a_file", "not_a_directory", "file_forbidden"]);

/** The main that the offer claims to be on, if it ever was main; else the main that the attempt started with. */
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
      ...about(`This looks like a secret (${kind}). Remove it; the app reads secrets from its environment.`, path),
      ...(line !== null && { line }),
    })),
    ...binaries.map(({ path, bytes }) =>
      about(`This is a binary of ${bytes} bytes. Remove it, or let the build generate it.`, path),
    ),
    ...own.map(({ path }) => about("This file is for agents, not part of the app. Remove it from git.", path)),
  ];
  return found.slice(0, maxFindings);
}

/** A new lock file alone is no work: the install writes it. */
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
