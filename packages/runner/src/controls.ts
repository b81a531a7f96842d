import type { ControlMessage } from "@slipway/contract";
import type { Mailbox } from "./mailbox.ts";
import type { Member } from "./member.ts";

/** What the host says to a run, brought to the agents that are at work. */
export interface Controls {
  /** Aborts when the run is to end. */
  readonly cancelled: AbortSignal;
  /** Until the member is disposed of. */
  join(member: Member): Disposable;
  /** Settles when there is no more to come. */
  follow(messages: AsyncIterable<ControlMessage>, mailbox: Mailbox): Promise<void>;
}

export function createControls(): Controls {
  const cancel = new AbortController();
  const members = new Set<Member>();
  return {
    cancelled: cancel.signal,
    join(member) {
      members.add(member);
      return { [Symbol.dispose]: () => void members.delete(member) };
    },
    async follow(messages, mailbox) {
      for await (const message of messages) {
        if (message.type === "cancel") cancel.abort();
        else obey(message, members, mailbox);
      }
    },
  };
}

function obey(
  message: Exclude<ControlMessage, { type: "cancel" }>,
  members: ReadonlySet<Member>,
  mailbox: Mailbox,
): void {
  switch (message.type) {
    case "message":
      mailbox.resume();
      if (members.size === 0) mailbox.put("lead", message.text, { wakes: true });
      for (const member of members) member.say(message.text, { wakes: true });
      return;
    case "context":
      mailbox.addContext(message.text);
      for (const member of members) member.say(`More to know:\n\n${message.text}`, { wakes: false });
      return;
    case "interrupt":
      mailbox.interrupt();
      for (const member of members) member.interrupt();
      return;
    case "permission":
      for (const member of members) member.answer(message);
      return;
  }
}
