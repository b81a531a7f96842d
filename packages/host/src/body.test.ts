import { EventEmitter } from "node:events";
import type { IncomingMessage } from "node:http";
import { expect, test } from "vitest";
import { type BodyLimits, readBody } from "./body.ts";

/** A body that is being read, and what its sender does. */
function begin(limits: Partial<BodyLimits> = {}) {
  let late = () => {};
  const request = Object.assign(new EventEmitter(), { pause: () => {} });
  const after = (_ms: number, work: () => void) => {
    late = work;
    return () => {};
  };
  const usual = { maxBytes: 4, limitMs: 1000, late: "invalid_request", after } as const;
  const body = readBody(request as unknown as IncomingMessage, { ...usual, ...limits });
  const send = (text: string) => request.emit("data", Buffer.from(text));
  return { request, body, send, late: () => late() };
}

test("a body that is short enough comes whole", async () => {
  const { request, body, send } = begin();
  send("ab");
  send("cd");
  request.emit("end");
  expect(String(await body)).toBe("abcd");
});

test("a body that is too large is refused, once as much of it is dropped as its sender may need to send", async () => {
  const strict = begin();
  strict.send("abcde");
  await expect(strict.body).rejects.toMatchObject({ code: "too_large" });
  const patient = begin({ droppedBytes: 2 });
  patient.send("abcdef");
  patient.request.emit("end");
  await expect(patient.body).rejects.toMatchObject({ code: "too_large" });
  const endless = begin({ droppedBytes: 2 });
  endless.send("abcdefg");
  await expect(endless.body).rejects.toMatchObject({ code: "too_large" });
});

test("a body that is cut, late or unwanted is refused as such", async () => {
  const cut = begin();
  cut.request.emit("error", new Error("reset"));
  cut.request.emit("close");
  await expect(cut.body).rejects.toMatchObject({ code: "aborted" });
  const late = begin({ late: "event_rejected" });
  late.late();
  await expect(late.body).rejects.toMatchObject({ code: "event_rejected" });
  const refusal = new Error("enough");
  const onBytes = () => {
    throw refusal;
  };
  const unwanted = begin({ onBytes });
  unwanted.send("a");
  await expect(unwanted.body).rejects.toBe(refusal);
});
