import { once } from "node:events";
import { connect, createServer } from "node:net";
import { expect, test } from "vitest";
import { createHttpServer } from "./http-server.ts";

test.each([
  ["nothing", ""],
  ["half a head", "POST /v1/messages HTTP/1.1\r\nhost: gateway\r\n"],
  ["half of its second head", "GET / HTTP/1.1\r\nhost: gateway\r\n\r\nGET / HT"],
])("a connection that is handed to a server and says %s is ended in time", async (_, said) => {
  const server = createHttpServer((_request, response) => void response.end("{}"), 200);
  await using front = createServer((socket) => server.emit("connection", socket)).listen(0, "127.0.0.1");
  await once(front, "listening");
  const client = connect(front.address() as { port: number }).resume();
  client.write(said);
  await once(client, "close");
  server.close();
});

test("a connection whose requests come whole is kept", async () => {
  const server = createHttpServer((_request, response) => void response.end("{}"), 5000);
  await using front = createServer((socket) => server.emit("connection", socket)).listen(0, "127.0.0.1");
  await once(front, "listening");
  const client = connect(front.address() as { port: number });
  client.write("GET / HTTP/1.1\r\nhost: gateway\r\n\r\n");
  const [answer] = (await once(client, "data")) as [Buffer];
  expect(answer.toString()).toContain("200 OK");
  const late = connect(front.address() as { port: number }).resume();
  await once(late, "close");
  client.write("GET / HTTP/1.1\r\nhost: gateway\r\nconnection: close\r\n\r\n");
  expect(String(await once(client, "data"))).toContain("200 OK");
  server.close();
});
