import process from "node:process";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { sandboxesOf } from "../../testing/processes.ts";
import { openWorld, type WorldWith } from "../../testing/world.ts";
import { app, get, type Unnamed } from "./testing.ts";

// npm and Chromium take seconds to start, and more beside other tests.
vi.setConfig({ testTimeout: 300_000 });
const soon = { timeout: 120_000 };

/** Never answers `/slow`, and leaves a file when it is asked. */
const slow = `import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
createServer((request, response) => {
  if (request.url === "/slow") writeFileSync("/tmp/asked", "");
  else response.writeHead(200, { "content-type": "text/html" }).end("<h1>Shop</h1>");
}).listen(Number(process.env.PORT), "127.0.0.1");
`;

const opensSlow: Unnamed = {
  type: "browser",
  viewport: "phone",
  steps: [
    { action: "open", path: "/" },
    { action: "open", path: "/slow" },
  ],
  appearance: null,
};
const measuresSlow: Unnamed = { type: "performance", path: "/slow", metric: "firstByteMs", atMost: 30_000 };

let site: WorldWith<"gates">;
beforeAll(async () => {
  site = await openWorld({ sandboxes: "local", repository: { ...app, "server.js": slow }, gates: {} });
});
afterAll(async () => await site[Symbol.asyncDispose]());

test.each([
  ["the app, when it is asked by http", "start", get("/slow", 200)],
  ["the app, when it is looked at in a browser", "start", opensSlow],
  ["the browser, while it opens a page", "browser/main.ts", opensSlow],
  ["the browser, while it measures a page", "browser/main.ts", measuresSlow],
])("a check is no verdict if a kill ends the sandbox of %s", async (_, program, check) => {
  const build = await site.demand({ one: { tasks: ["own"], checks: [check] } });
  const judged = site.judge("intent", site.main, {}, build);
  const app = await vi.waitFor(() => sandboxWith("start"), soon);
  await vi.waitFor(async () => await (await site.provider.get(app)).files.stat("/tmp/asked"), soon);
  const target = await sandboxWith(program);
  const init = sandboxesOf(site.stateDirectory).find(({ id }) => id === target)?.init;
  if (init === undefined) throw new Error(`${target} does not run`);
  process.kill(init.pid, "SIGKILL");
  expect(await judged).toMatchObject({ verdict: "error" });
});

/** The gate's sandbox in which a command with such an argument was started. */
async function sandboxWith(argument: string) {
  for (const { id } of await site.provider.list()) {
    const execs = await (await site.provider.get(id)).execs();
    if (execs.some(({ argv }) => argv.some((one) => one.endsWith(argument)))) return id;
  }
  throw new Error(`no sandbox has started ${argument}`);
}
