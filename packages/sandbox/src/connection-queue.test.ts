import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { createConnectionQueue } from "./connection-queue.ts";

const closed = (connection: PassThrough) => new Promise((resolve) => connection.once("close", resolve));

test("connections that end before anybody takes them are kept no longer, and make room", async () => {
  const queue = createConnectionQueue(2);
  for (let round = 0; round < 5; round++) {
    const left = [new PassThrough(), new PassThrough()];
    for (const connection of left) queue.push(connection);
    expect(left.some(({ destroyed }) => destroyed)).toBe(false);
    const gone = Promise.all(left.map(closed));
    for (const connection of left) connection.destroy();
    await gone;
  }
  const kept = new PassThrough();
  queue.push(kept);
  const { value } = await queue.take()[Symbol.asyncIterator]().next();
  expect(value).toBe(kept);
  queue.close();
});
