import { fence, type TaskOrder } from "@slipway/contract";
import { keepEndsOf } from "../system/output.ts";
import { fenceRule, paragraphs } from "../team/host-words.ts";
import type { Failure } from "./checks.ts";

const maxEarlierBytes = 24 * 1024;

/** What each level of error escalation asks for. */
const approaches = [
  "An earlier attempt failed by an error for which a fix is known. Apply the fix, and see that it holds.",
  "An earlier attempt failed. Mend what failed, directly and with the smallest change that does it.",
  "Earlier attempts failed, and direct fixes did not hold. Find the cause first: reproduce it, follow it through the code, and only then mend it where it arises.",
  "Earlier attempts failed, and the component resists. Write the component anew: keep what others rely on, replace what is inside.",
  "Earlier attempts failed. Build the feature anew from what is wanted, and take over nothing of what was tried.",
] as const;

export function buildPrompt(order: TaskOrder, installFailure: Failure | null): string {
  const { task, criteria, level, earlier } = order;
  return paragraphs(
    `Your task: ${task.title}`,
    task.description,
    task.expectedFiles.length > 0 && `Files that you will probably write: ${task.expectedFiles.join(", ")}`,
    criteria.length > 0 && `It serves these criteria:\n${list(criteria.map(({ statement }) => statement))}`,
    order.intent !== "" && `What is built as a whole:\n${fence("intent", order.intent)}`,
    commandsOf(order),
    secretsOf(order),
    level !== null && (approaches[level] ?? ""),
    order.knownFix !== undefined && `The known fix:\n${fence("fix", order.knownFix)}`,
    earlier.length > 0 &&
      `What earlier attempts ended with:\n${fence("errors", keepEndsOf(earlier.join("\n\n"), maxEarlierBytes))}`,
    installFailure !== null && `The install fails as things are:\n${fence("output", installFailure.text)}`,
    "The workspace is a git repository, on a branch of your own. Whatever is in it when you end your turn is committed; " +
      "commit yourself where that makes sense: what you commit is checked beside you, and you are told what fails. Write tests for what you build, and leave none out that are there. " +
      "Others work on other tasks of the same app: what you share with them is in .slipway/context, and read_context, " +
      "claim_files and tell_others are for that.",
    fenceRule,
  );
}

export function fixPrompt(failure: Failure): string {
  return paragraphs(
    `\`${failure.command}\` fails on your work. Mend the cause, not the test.`,
    fence("output", failure.text),
    fenceRule,
  );
}

export function cleanFixPrompt(failure: Failure): string {
  return paragraphs(
    `\`${failure.command}\` fails in a clean checkout of what you committed. What it needs must be committed, and must not be ignored.`,
    fence("output", failure.text),
    fenceRule,
  );
}

export function conflictPrompt(paths: readonly string[], text: string): string {
  return paragraphs(
    "Main has moved on, and its changes conflict with yours. The files below have both sides in them, between " +
      "<<<<<<< and >>>>>>>. Write each so that both purposes are served, take the marks out, and run the tests. " +
      "Main is there as refs/remotes/slipway/main.",
    list(paths),
    text !== "" && fence("changes", text),
    fenceRule,
  );
}

export function unsolvedPrompt(paths: readonly string[]): string {
  return paragraphs("These files still have conflict marks in them. Take them out:", list(paths));
}

export function intentPrompt(criteria: TaskOrder["criteria"], isAgain: boolean): string {
  return paragraphs(
    isAgain
      ? "You have said nothing of these criteria yet:"
      : "Go through the criteria that your task serves, one by one. Look at the app as it is now, mend what is missing, and " +
          "say of each with state_criterion whether it holds and what shows it: what you ran, and what you saw.",
    list(criteria.map(({ id, statement }) => `${id}: ${statement}`)),
  );
}

export const goOnWithWords = "There is more to do on your task:";

function commandsOf({ commands }: TaskOrder): string | false {
  const named = Object.entries(commands).map(([name, command]) => `${name}: ${command}`);
  return named.length > 0 && `The project's commands:\n${list(named)}`;
}

function secretsOf({ secrets }: TaskOrder): string | false {
  const named = secrets.map(({ scheme = "https", host, header }) => `${scheme}://${host}: ${header}`);
  return (
    named.length > 0 &&
    `Requests to these addresses, by name and without a port, get a header with a credential on their way out:\n${list(named)}\n` +
      "The credential is nowhere in here. Send any placeholder in its place; the app takes it from a variable of its " +
      "environment, with a placeholder where that is not set."
  );
}

function list(entries: readonly string[]): string {
  return entries.map((entry) => `- ${entry}`).join("\n");
}
