import { PassThrough } from "node:stream";
import { type Control, type NumberedEvent, SlipwayError } from "@slipway/contract";
import { expect, it } from "vitest";
import type { Context } from "../../input/command.ts";
import { steer, tooLate } from "./steer.ts";

function session(terminal: boolean) {
  const sent: Control[] = [];
  const notes: string[] = [];
  const stdin = Object.assign(new PassThrough(), { isTTY: terminal });
  let interrupt: (signal: "SIGINT" | "SIGTERM") => void = () => {};
  const context = {
    io: { stdin },
    json: false,
    interrupts: {
      take(handler: typeof interrupt) {
        interrupt = handler;
        return { [Symbol.dispose]: () => {} };
      },
    },
    note: async (line: string) => void notes.push(line),
  } as unknown as Context;
  const steering = steer(context, (control) => sent.push(control));
  const type = async (line: string) => {
    const before = sent.length;
    stdin.write(`${line}\n`);
    // The line reader takes what is in the stream in this turn of the event loop.
    await new Promise(setImmediate);
    return sent.slice(before);
  };
  return { sent, notes, steering, type, interrupt: (signal: "SIGINT" | "SIGTERM" = "SIGINT") => interrupt(signal) };
}

const asks = (id: string): NumberedEvent => ({
  sequence: 1,
  at: 0,
  event: { type: "agent", agent: "lead", event: { type: "permission", id, tool: "terminal", input: "rm -rf /" } },
});

it("a line is a message, an empty one is nothing", async () => {
  const { type, steering } = session(true);
  using _ = steering;
  expect(await type("use tabs")).toEqual([{ type: "message", text: "use tabs" }]);
  expect(await type("  ")).toEqual([]);
});

it("only a clear yes allows what an agent asks for, each question in its turn", async () => {
  const { type, steering } = session(true);
  using _ = steering;
  for (const id of ["1", "2", "3"]) steering.see(asks(id));
  expect(await type("y")).toEqual([{ type: "permission", id: "1", allow: true, reason: "" }]);
  expect(await type("yesterday")).toMatchObject([{ id: "2", allow: false }]);
  expect(await type("")).toMatchObject([{ id: "3", allow: false }]);
  expect(await type("y")).toEqual([{ type: "message", text: "y" }]);
});

it("where nobody can type, permissions are refused at once", () => {
  const { sent, steering } = session(false);
  using _ = steering;
  steering.see(asks("1"));
  expect(sent).toMatchObject([{ type: "permission", id: "1", allow: false }]);
});

it("the first Ctrl-C interrupts, the second cancels", () => {
  const { sent, interrupt, steering } = session(true);
  using _ = steering;
  interrupt();
  interrupt();
  expect(sent).toEqual([{ type: "interrupt" }, { type: "cancel" }]);
});

it("a request to end, and a Ctrl-C where nobody can type, cancel", () => {
  const terminal = session(true);
  terminal.interrupt("SIGTERM");
  expect(terminal.sent).toEqual([{ type: "cancel" }]);
  const piped = session(false);
  piped.interrupt();
  expect(piped.sent).toEqual([{ type: "cancel" }]);
});

it("a run that asks for more than it may be told does not end the program", () => {
  expect(() => tooLate(new SlipwayError("too_large", "a run is told at most 10000 messages"))).not.toThrow();
  expect(() => tooLate(new SlipwayError("run_ended", "the run has ended"))).not.toThrow();
  expect(() => tooLate(new Error("a defect"))).toThrow("a defect");
});
