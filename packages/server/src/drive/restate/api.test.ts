import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { SlipwayError } from "@slipway/contract";
import { expect, test } from "vitest";
import { checkHealth, createRestateApi } from "./api.ts";

const urlOf = (server: { address(): unknown }) => `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;

test("a Restate that never answers is told of in time", async () => {
  await using mute = createServer((socket) => void socket.resume());
  await once(mute.listen(0, "127.0.0.1"), "listening");
  const url = urlOf(mute);
  await expect(checkHealth({ ingressUrl: url, adminUrl: url }, 100)).rejects.toMatchObject({
    code: "loop_unavailable",
    message: expect.stringContaining("in time"),
  });
});

test("a Restate whose answer begins and never ends is told of in time", async () => {
  const slow = createHttpServer((_, response) => void response.writeHead(200).write("{"));
  await once(slow.listen(0, "127.0.0.1"), "listening");
  const url = urlOf(slow);
  await expect(checkHealth({ ingressUrl: url, adminUrl: url }, 100)).rejects.toMatchObject({
    code: "loop_unavailable",
    message: expect.stringContaining("in time"),
  });
  slow.closeAllConnections();
  await slow[Symbol.asyncDispose]();
});

test("a Restate that is away for a while is waited for, and not forever", async () => {
  let answers = 0;
  const server = createHttpServer((request, response) => {
    answers += 1;
    if (answers === 1) request.destroy();
    else response.writeHead(answers < 4 ? 503 : 202).end();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const url = urlOf(server);
  await createRestateApi({ ingressUrl: url, adminUrl: url }).resolveAwakeable("bell");
  expect(answers).toBe(4);
  server.closeAllConnections();
  await server[Symbol.asyncDispose]();
  const impatient = createRestateApi({ ingressUrl: url, adminUrl: url }, { limitMs: 200 });
  const refused = await impatient.resolveAwakeable("bell").catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(SlipwayError);
  expect(refused).toMatchObject({ code: "loop_unavailable" });
});
