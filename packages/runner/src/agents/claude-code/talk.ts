import { randomUUID } from "node:crypto";
import { readLines } from "../program/lines.ts";
import type { Program } from "../program/process.ts";
import { type ClaudeControlRequest, type ClaudeMessage, readMessage } from "./messages.ts";

const maxLineBytes = 32 * 1024 * 1024;
/** After its result the program ends once its input ends. One that stays silent for so long is killed. */
const settleMs = 5_000;

/** The exchange with the program over its standard input and output. */
export interface Talk {
  /** Yields until the program ends. */
  messages(): AsyncGenerator<ClaudeMessage>;
  /** False: it takes no more input. */
  say(text: string): boolean;
  answer(permission: { readonly id: string; readonly allow: boolean; readonly reason: string }): void;
  interrupt(): void;
  /** Lets the program end when it has processed its input. */
  finish(): void;
}

export function talkTo(program: Program): Talk {
  const asked = new Map<string, unknown>();
  let settle: NodeJS.Timeout | undefined;
  let finished = false;

  const send = (message: unknown): boolean => {
    if (finished) return false;
    program.stdin.write(`${JSON.stringify(message)}\n`);
    return true;
  };
  const respond = (id: string, response: Record<string, unknown>) =>
    send({ type: "control_response", response: { ...response, request_id: id } });
  const note = ({ request_id, request }: ClaudeControlRequest): void => {
    if (request.subtype === "can_use_tool") asked.set(request_id, request.input);
    else respond(request_id, { subtype: "error", error: `${request.subtype} is not answered here` });
  };
  return {
    async *messages() {
      try {
        for await (const line of readLines(program.stdout, maxLineBytes)) {
          settle?.refresh();
          const message = line.trim() === "" ? undefined : readMessage(line);
          if (message?.type === "control_request") note(message);
          if (message !== undefined) yield message;
        }
      } finally {
        finished = true;
        clearTimeout(settle);
      }
    },
    say: (text) => send({ type: "user", message: { role: "user", content: [{ type: "text", text }] } }),
    answer({ id, allow, reason }) {
      if (!asked.has(id)) return;
      const response = allow
        ? { behavior: "allow", updatedInput: asked.get(id) }
        : { behavior: "deny", message: reason };
      asked.delete(id);
      respond(id, { subtype: "success", response });
    },
    interrupt: () =>
      void send({ type: "control_request", request_id: randomUUID(), request: { subtype: "interrupt" } }),
    finish() {
      if (finished) return;
      finished = true;
      program.stdin.end();
      settle = setTimeout(program.kill, settleMs);
    },
  };
}
