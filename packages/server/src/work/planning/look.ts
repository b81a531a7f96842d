import { printable, SlipwayError } from "@slipway/contract";
import type { AppSeen } from "@slipway/engine";
import { devServerPort, type OwnedSandbox, type SandboxProvider, startDevServer } from "@slipway/sandbox";
import { openChecker } from "../gates/checker.ts";
import type { CheckerAnswer } from "../gates/checks/answers.ts";
import { shown } from "../gates/findings.ts";
import { endOf, lastOf } from "../step-words.ts";
import type { Installed } from "./install.ts";

export interface LookParts {
  readonly provider: Pick<SandboxProvider, "create">;
  /** Has the repository's files. */
  readonly sandbox: OwnedSandbox;
  /** For the checker's sandboxes. */
  readonly labels: Readonly<Record<string, string>>;
  install(): Promise<Installed>;
  /** From the start of the app on. */
  readonly lookMs: number;
  readonly signal: AbortSignal;
}

const mostPages = 12;
const maxNoteCharacters = 800;
const maxTold = 5;

/** Shows the app's pages as they are. Whatever keeps it from being seen is told, and no failure. */
export async function look(parts: LookParts): Promise<AppSeen> {
  const { signal, lookMs, install } = parts;
  let late: AbortSignal | undefined;
  try {
    const { steps } = await install();
    const failed = steps.find(({ exitCode }) => exitCode !== 0);
    if (failed !== undefined) {
      const words = lastOf(failed, maxNoteCharacters);
      return unseen(`its dependencies cannot be installed: ${failed.argv.join(" ")} ${endOf(failed.exit)}: ${words}`);
    }
    late = AbortSignal.timeout(lookMs);
    return seenIn(await visit(parts, AbortSignal.any([signal, late])));
  } catch (error) {
    if (signal.aborted) throw error;
    if (late?.aborted) return unseen(`that took longer than ${Math.round(lookMs / 1000)} seconds`);
    if (!(error instanceof SlipwayError)) throw error;
    return unseen(error.message);
  }
}

/** The app reaches nothing, and the browser only the app. Both have ended when this returns. */
async function visit({ provider, sandbox, labels, lookMs }: LookParts, signal: AbortSignal): Promise<CheckerAnswer> {
  await using opened = new AsyncDisposableStack();
  const { exec } = await startDevServer(sandbox, { readyMs: lookMs / 3, signal });
  // The sandbox ends soon in any case.
  opened.defer(() => exec.kill().catch(() => {}));
  const connect = (given: AbortSignal) => sandbox.connect(devServerPort, { signal: given });
  const checker = opened.use(await openChecker({ provider, labels, connect, signal, checkMs: lookMs }));
  return await checker.check({ type: "look", most: mostPages, forMs: lookMs / 3 });
}

function seenIn(answer: CheckerAnswer): AppSeen {
  if (answer.type === "failed") {
    return unseen(
      answer.why === "stuck" ? "its first page stopped answering" : `its first page cannot be opened: ${answer.detail}`,
    );
  }
  if (answer.type !== "looked") throw new SlipwayError("exec_failed", "the checker answered a different job");
  const { pages, unread, hasMore } = answer;
  const told = [
    ...(unread.length > 0 ? [`These pages could not be read: ${unread.slice(0, maxTold).join(", ")}.`] : []),
    ...(hasMore ? ["Links lead to more pages than these."] : []),
  ];
  return {
    pages: pages.map((page) => ({ ...page, shows: printable(page.shows) })),
    unseen: told.length > 0 ? shown(told.join(" "), maxNoteCharacters) : null,
  };
}

function unseen(why: string): AppSeen {
  return { pages: [], unseen: shown(`There are no pages: the app was not seen, because ${why}`, maxNoteCharacters) };
}
