import { createInterface } from "node:readline";
import { type Control, hasCode, type NumberedEvent } from "@slipway/contract";
import type { Context } from "../../input/command.ts";

/** Carries the user's input to a run while it works. */
export interface Steering extends Disposable {
  /** Shows it each event, so that it knows which permission a yes or no answers. */
  see(event: NumberedEvent): void;
}

/**
 * Sends typed lines as messages; while an agent asks for a permission, a yes or no answers it. The first Ctrl-C
 * interrupts the agents, the second cancels the run. Refuses permissions if nobody can type.
 */
export function steer(context: Context, send: (control: Control) => void): Steering {
  const interactive = context.io.stdin.isTTY === true && !context.json;
  const waiting: string[] = [];
  const answer = (allow: boolean, reason: string) => {
    const id = waiting.shift();
    if (id !== undefined) send({ type: "permission", id, allow, reason });
  };
  const lines = interactive ? createInterface({ input: context.io.stdin }) : undefined;
  lines?.on("line", (line) => {
    if (waiting.length > 0) return isYes(line) ? answer(true, "") : answer(false, "the user said no");
    if (line.trim() !== "") send({ type: "message", text: line });
  });
  let interrupts = 0;
  const taken = context.interrupts.take((signal) => {
    interrupts++;
    if (interrupts > 1 || !interactive || signal === "SIGTERM") return send({ type: "cancel" });
    send({ type: "interrupt" });
    void context.note("interrupted: type what to do next, or press Ctrl-C again to cancel");
  });
  return {
    see({ event }) {
      if (event.type !== "agent" || event.event.type !== "permission") return;
      waiting.push(event.event.id);
      if (interactive) void context.note("allow it? Type y or n, then Enter");
      else answer(false, "nobody can answer");
    },
    [Symbol.dispose]() {
      taken[Symbol.dispose]();
      lines?.close();
    },
  };
}

function isYes(line: string): boolean {
  return /^\s*y(es)?\s*$/i.test(line);
}

/**
 * Drops a message that comes too late: the run is over, or an agent that keeps asking for permissions has used up its
 * message limit. A cancel takes effect even then.
 */
export function tooLate(error: unknown): void {
  if (!hasCode(error, "run_ended") && !hasCode(error, "too_large")) throw error;
}
