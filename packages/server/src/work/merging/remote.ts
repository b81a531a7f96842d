import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { type BuildId, type BuildView, createLanes, printable, retry, SlipwayError } from "@slipway/contract";
import { type NewEvent, type NoteWork, report, type Store, type WorkingBuild } from "@slipway/engine";
import { z } from "zod";
import type { Repositories } from "../repository/repositories.ts";
import { pushFromOutbox } from "./outbox.ts";
import { readResult } from "./result.ts";

export interface RemoteSettings {
  /** Receives each build's main as a branch. */
  readonly pushUrl: string;
  /** The path of a program that opens a pull request for a build that has succeeded. */
  readonly pullRequestCommand?: string | undefined;
}

export interface RemoteParts extends RemoteSettings {
  readonly repositories: Repositories;
  readonly store: { readonly builds: Pick<Store["builds"], "get">; readonly notes: Notes };
  readonly note: NoteWork;
  /** The user's environment: git finds the keys of the remote in it. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Waits between tries to finish noted work. */
  readonly finishWaitsMs?: readonly number[];
  readonly tell: (build: BuildId, event: NewEvent) => Promise<void>;
  readonly log: (message: string) => void;
}

/** A copy of main on a remote. A failure is reported and tried again at the next merge. */
export interface Remote extends AsyncDisposable {
  /** Main has moved. */
  push(build: WorkingBuild): Promise<void>;
  /** The build has ended: notes what is left to do, in case this process ends before it is done. */
  noteEnd(build: WorkingBuild): Promise<void>;
  /**
   * Does what is noted, of one build or of all. Retries for about an hour, then leaves it to the next process; the note
   * says why (see `readRemoteEnd`). Repeats what a killed process did without noting it, so the program that opens pull
   * requests may run twice for the same `SLIPWAY_BUILD`.
   */
  finish(build?: BuildId): Promise<void>;
}

const execute = promisify(execFile);
const commandMs = 5 * 60_000;
const maxReason = 2000;
const maxTitle = 120;

const minuteMs = 60_000;
const usualFinishWaitsMs = [0.25, 0.5, 1, 2, 4, 8, 10, 10, 10, 10].map((minutes) => minutes * minuteMs);
const kind = "remote";
/** `to-finish`: work is left after the build's end, and why the last try failed. `pull-request`: the program's output. */
type NoteName = "to-finish" | "pull-request";

export type RemoteEnd = Pick<BuildView, "pullRequest" | "remoteFailure" | "result">;

type Notes = Pick<Store["notes"], "list">;

/** A build's outcome outside its own repository: last push, pull request, result. `directory`: of the build. */
export async function readRemoteEnd(notes: Notes, build: BuildId, directory: string): Promise<RemoteEnd> {
  const [pullRequest, remoteFailure] = [
    await readNote(notes, build, "pull-request"),
    await readNote(notes, build, "to-finish"),
  ];
  return { pullRequest: pullRequest || null, remoteFailure: remoteFailure || null, result: readResult(directory) };
}

async function readNote(notes: Notes, build: BuildId, name: NoteName): Promise<string | undefined> {
  const found = (await notes.list(build, kind)).find((one) => one.name === name);
  return found && z.string().parse(found.note);
}

const reasonOf = (text: string) => printable(text).slice(0, maxReason);
const branchOf = ({ id }: Pick<WorkingBuild, "id">) => `slipway/${id}`;

export function createRemote(parts: RemoteParts): Remote {
  const { repositories, store, environment, pushUrl, pullRequestCommand, tell, log } = parts;
  const { finishWaitsMs = usualFinishWaitsMs } = parts;
  const closing = new AbortController();
  const { signal } = closing;
  const note = (build: BuildId, name: NoteName, text: string | null) => parts.note(build, [{ kind, name, note: text }]);
  const lanes = createLanes<BuildId>();
  const pushed = new Map<BuildId, string>();

  /** One at a time, each with main as it is then. */
  const inLine = (build: BuildId, work: () => Promise<void>): Promise<void> =>
    lanes.run(build, () =>
      work().catch(async (error: Error) => {
        if (signal.aborted) return;
        const reason = reasonOf(error.message);
        log(`${build}: ${reason}`);
        await tell(build, report("remote.failed", null, { reason }));
      }),
    );

  const pushMain = async (build: WorkingBuild) => {
    signal.throwIfAborted();
    const repository = await repositories.of(build.id);
    const main = await repository.main();
    if (pushed.get(build.id) === main) return;
    const { origin } = await repository.create({ from: "empty", atMs: 0 });
    const branch = branchOf(build);
    const outbox = { directory: repositories.directoryOf(build.id), environment, url: pushUrl };
    const commit = await pushFromOutbox({ ...outbox, main, onto: origin?.commit ?? null, branch }, signal);
    pushed.set(build.id, main);
    await tell(build.id, report("remote.pushed", `remote.pushed:${commit}`, { branch, commit }));
  };

  const openPullRequest = async (build: WorkingBuild, command: string) => {
    if ((await readNote(store.notes, build.id, "pull-request")) !== undefined) return;
    const { origin } = await (await repositories.of(build.id)).create({ from: "empty", atMs: 0 });
    const [title = ""] = printable(build.request).trim().split("\n", 1);
    const env = {
      ...environment,
      SLIPWAY_BUILD: build.id,
      SLIPWAY_PUSH_URL: pushUrl,
      SLIPWAY_BRANCH: branchOf(build),
      SLIPWAY_BASE: origin?.branch ?? "main",
      SLIPWAY_TITLE: title.slice(0, maxTitle),
    };
    // No shell, no arguments: text of a user or a model is never read as a command.
    const { stdout } = await execute(command, [], { env, cwd: "/", timeout: commandMs, signal }).catch((error) => {
      const words = String(error.stderr ?? "").trim() || error.message;
      throw new SlipwayError("exec_failed", `cannot open the pull request: ${words}`);
    });
    const pullRequest = reasonOf(stdout.trim());
    await note(build.id, "pull-request", pullRequest);
    log(`${build.id}: opened a pull request: ${pullRequest}`);
  };

  const finishOne = async (id: BuildId): Promise<void> => {
    try {
      const build = await store.builds.get(id);
      await pushMain(build);
      if (pullRequestCommand !== undefined) await openPullRequest(build, pullRequestCommand);
      await note(id, "to-finish", null);
    } catch (error) {
      signal.throwIfAborted();
      await note(id, "to-finish", reasonOf((error as Error).message));
      throw error;
    }
  };

  /** Retries here, because an ended build has no next merge and gets no reports. */
  const finishPatiently = (id: BuildId): Promise<void> => {
    const mayPass = (error: unknown) => {
      log(`${id}: ${reasonOf((error as Error).message)}`);
      return true;
    };
    return retry(() => finishOne(id), { waitsMs: finishWaitsMs, mayPass, signal });
  };

  return {
    push: (build) => inLine(build.id, () => pushMain(build)),
    async noteEnd({ id }) {
      if ((await store.builds.get(id)).status === "succeeded") await note(id, "to-finish", "");
    },
    async finish(one) {
      const ids = one === undefined ? await repositories.builds() : [one];
      await Promise.all(
        ids.map((id) =>
          inLine(id, async () => {
            if ((await readNote(store.notes, id, "to-finish")) !== undefined) await finishPatiently(id);
          }),
        ),
      );
    },
    async [Symbol.asyncDispose]() {
      closing.abort();
      await lanes.settled();
    },
  };
}
