import { mkdtempSync, rmSync } from "node:fs";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openEventLog } from "./events/log.ts";
import { onLines, sendLine } from "./protocol.ts";
import { type Handlers, serveKeeper } from "./server.ts";

/** What a caller is told of a call that fails with this, and whether the keeper takes it for a defect. */
async function toldOf(error: Error) {
  const directory = mkdtempSync(join(tmpdir(), "slipway-keeper-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const defects: unknown[] = [];
  const handlers = {
    sleep: () => {
      throw error;
    },
  } as unknown as Handlers;
  const events = openEventLog(join(directory, "events.jsonl"), () => 0);
  const path = join(directory, "keeper.sock");
  const server = await serveKeeper(path, handlers, events, {
    onIdle: () => {},
    onDefect: (_, defect) => defects.push(defect),
  });
  onTestFinished(() => server.close());
  const socket = createConnection(path);
  const answer = new Promise<unknown>((resolve) => onLines(socket, resolve));
  sendLine(socket, { call: 1, method: "sleep", params: {} });
  return { answer: await answer, defects };
}

test("a disk without room is no defect of the keeper's, and has a code of its own", async () => {
  const { answer, defects } = await toldOf(Object.assign(new Error("ENOSPC: no space left"), { code: "ENOSPC" }));
  const message = "The keeper's disk is full: ENOSPC: no space left";
  expect(answer).toMatchObject({ call: 1, error: { code: "out_of_disk", message } });
  expect(defects).toEqual([]);
});

test("what nobody expects is a defect, and internal", async () => {
  const error = new TypeError("no such thing");
  const { answer, defects } = await toldOf(error);
  expect(answer).toMatchObject({ call: 1, error: { code: "internal", message: "The keeper failed: no such thing" } });
  expect(defects).toEqual([error]);
});
