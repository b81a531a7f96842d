import type { ControlMessage, Finding } from "@slipway/contract";
import { findingsPrompt, sharedWords } from "./host-words.ts";
import type { Member } from "./member.ts";
import type { RunProgress } from "./progress.ts";

/** Delivers the host's messages to the agents at work. */
export interface Controls {
  /** Aborts when the run must end. */
  readonly cancelled: AbortSignal;
  /** Delivers to the member until the result is disposed. */
  join(member: Member): Disposable;
  /** Delivers findings made during the work to the lead. */
  find(findings: readonly Finding[]): void;
  /** Settles when there are no more messages. */
  follow(messages: AsyncIterable<ControlMessage>): Promise<void>;
}

export function createControls(progress: Pick<RunProgress, "mailbox" | "inbox" | "hear">): Controls {
  const cancel = new AbortController();
  const members = new Set<Member>();
  return {
    cancelled: cancel.signal,
    join(member) {
      members.add(member);
      return { [Symbol.dispose]: () => void members.delete(member) };
    },
    find(findings) {
      if (members.size > 0) tellLead(findings, members, progress);
    },
    async follow(messages) {
      for await (const message of messages) {
        if (message.type === "cancel") cancel.abort();
        else obey(message, members, progress);
        await progress.hear(message.sequence);
      }
    },
  };
}

function obey(
  message: Exclude<ControlMessage, { type: "cancel" }>,
  members: ReadonlySet<Member>,
  { mailbox, inbox }: Pick<RunProgress, "mailbox" | "inbox">,
): void {
  switch (message.type) {
    case "message":
      mailbox.resume();
      if (members.size === 0) mailbox.put("lead", message.text, { wakes: true });
      for (const member of members) member.say(message.text, { wakes: true });
      return;
    case "context":
      mailbox.addContext(message.text);
      for (const member of members) member.say(`More context:\n\n${message.text}`, { wakes: false });
      return;
    case "interrupt":
      mailbox.interrupt();
      for (const member of members) member.interrupt();
      return;
    case "permission":
      for (const member of members) member.answer(message);
      return;
    case "shared":
      inbox.share(message.part);
      if (message.quiet === true) return;
      for (const member of members) member.say(sharedWords(message.part), { wakes: false });
      return;
    case "findings": {
      if (inbox.isKnown(message)) return;
      const isTold = members.size > 0;
      inbox.find(message, { isTold });
      if (!isTold || message.findings.length === 0) return;
      tellLead(message.findings, members, { mailbox });
      return;
    }
    case "main":
    case "claimed":
    case "merged":
      inbox.take(message);
      return;
  }
}

/** Reaches the lead at its next step, or in its next turn. */
function tellLead(
  findings: readonly Finding[],
  members: ReadonlySet<Member>,
  { mailbox }: Pick<RunProgress, "mailbox">,
): void {
  const lead = [...members].find(({ name }) => name === "lead");
  const words = findingsPrompt(findings);
  if (lead === undefined) mailbox.put("lead", words, { wakes: true });
  else lead.say(words, { wakes: true });
}
