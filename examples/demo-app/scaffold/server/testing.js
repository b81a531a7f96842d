import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApi } from "./api.js";
import { openContext } from "./context.js";

/** The API with a data file of its own, for one test. */
export async function startApi(test) {
  const directory = await mkdtemp(join(tmpdir(), "basket-"));
  const context = await openContext({ BASKET_DATA: join(directory, "lists.json") });
  const server = createServer(createApi(context)).listen(0, "127.0.0.1");
  await once(server, "listening");
  test.after(async () => {
    server.closeAllConnections();
    server.close();
    await rm(directory, { recursive: true });
  });
  const baseUrl = `http://127.0.0.1:${server.address().port}`;
  const ask = async (method, path, body) => {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const response = await fetch(baseUrl + path, { method, body: text });
    return { status: response.status, body: response.status === 204 ? undefined : await response.json() };
  };
  return { ask, baseUrl, context };
}
