import { fence, type TaskOrder } from "@slipway/contract";
import { keepEndsOf } from "../system/output.ts";
import { fenceRule, paragraphs } from "../team/host-words.ts";
import type { Failure } from "./checks.ts";

const maxEarlierBytes = 24 * 1024;

/** The prompt for each level of error escalation. */
const approaches = [
  "An earlier attempt failed with an error that has a known fix. Apply the fix, and check that it works.",
  "An earlier attempt failed. Fix what failed, directly and with the smallest change that works.",
  "Earlier attempts failed, and direct fixes did not hold. Find the cause first: reproduce it, trace it through the " +
    "code, and only then fix it at its origin.",
  "Earlier attempts failed, and the component resists repair. Rewrite it: keep what others rely on, replace the rest.",
  "Earlier attempts failed. Build the feature from scratch from its requirements, without anything of these attempts.",
] as const;

export function buildPrompt(order: TaskOrder, installFailure: Failure | null): string {
  const { task, criteria, level, earlier } = order;
  return paragraphs(
    `Your task: ${task.title}`,
    task.description,
    task.expectedFiles.length > 0 && `Files you will probably write: ${task.expectedFiles.join(", ")}`,
    criteria.length > 0 && `It serves these criteria:\n${list(criteria.map(({ statement }) => statement))}`,
    order.intent !== "" && `The app as a whole:\n${fence("intent", order.intent)}`,
    order.surface !== "" &&
      "The names that the app keeps. What your task builds of them has these paths, roles, accessible names, texts and " +
        `fields, to the letter: other tasks and the app's users rely on them.\n${fence("surface", order.surface)}`,
    commandsOf(order),
    secretsOf(order),
    level !== null && (approaches[level] ?? ""),
    order.knownFix !== undefined && `The known fix:\n${fence("fix", order.knownFix)}`,
    earlier.length > 0 &&
      `What earlier attempts ended with:\n${fence("errors", keepEndsOf(earlier.join("\n\n"), maxEarlierBytes))}`,
    installFailure !== null && `The install currently fails:\n${fence("output", installFailure.text)}`,
    "The workspace is a git repository, on a branch of your own. Whatever is in it when you end your turn is committed; " +
      "commit yourself where that makes sense: your commits are checked while you work, and you are told what fails. " +
      "Write tests for what you build, and do not drop existing ones. " +
      "Others work on other tasks of the same app: shared information is in .slipway/context. Use read_context, " +
      "claim_files and tell_others to coordinate.",
    fenceRule,
  );
}

export function fixPrompt(failure: Failure): string {
  return paragraphs(
    `\`${failure.command}\` fails on your work. Fix the cause, not the test.`,
    fence("output", failure.text),
    fenceRule,
  );
}

export function cleanFixPrompt(failure: Failure): string {
  return paragraphs(
    `\`${failure.command}\` fails in a clean checkout of your commits. Commit everything it needs, and do not ignore it.`,
    fence("output", failure.text),
    fenceRule,
  );
}

export function conflictPrompt(paths: readonly string[], text: string): string {
  return paragraphs(
    "Main has moved on, and its changes conflict with yours. The files below have both sides in them, between " +
      "<<<<<<< and >>>>>>>. Resolve each so that both purposes are served, remove the marks, and run the tests. " +
      "Main is available as refs/remotes/slipway/main.",
    list(paths),
    text !== "" && fence("changes", text),
    fenceRule,
  );
}

export function unsolvedPrompt(paths: readonly string[]): string {
  return paragraphs("These files still have conflict marks in them. Remove the marks:", list(paths));
}

export function intentPrompt(criteria: TaskOrder["criteria"], isAgain: boolean): string {
  return paragraphs(
    isAgain
      ? "You have said nothing about these criteria yet:"
      : "Go through the criteria that your task serves, one by one. Look at the app as it is now, add what is missing, and " +
          "report each with state_criterion: whether it holds, and the evidence: what you ran, and what you saw.",
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
    `Outgoing requests to these addresses, by name and without a port, get a header with a credential:\n${list(named)}\n` +
      "The credential is not in this sandbox. Send any placeholder instead. The app reads it from an environment variable, " +
      "with a placeholder as the default."
  );
}

function list(entries: readonly string[]): string {
  return entries.map((entry) => `- ${entry}`).join("\n");
}
