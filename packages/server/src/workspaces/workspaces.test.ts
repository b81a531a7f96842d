import { projectPath, run } from "@slipway/sandbox";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { openPlace, type Place } from "./testing.ts";
import { createWorkspaces } from "./workspaces.ts";

// npm takes seconds to start, and more beside other tests.
vi.setConfig({ testTimeout: 120_000 });

let place: Place;
beforeAll(async () => {
  place = await openPlace();
  const scripts = { postinstall: "node -e \"require('fs').writeFileSync('made.txt', 'by a script')\"" };
  await place.registry.publish("greeting", "1.0.0", { "index.js": "module.exports = 'hello';" }, { scripts });
});
afterAll(() => place[Symbol.asyncDispose]());

const manifest = (fields: object = {}) => JSON.stringify({ name: "app", version: "1.0.0", private: true, ...fields });
const app = {
  "package.json": manifest({ dependencies: { greeting: "^1.0.0" } }),
  "src/main.js":
    "console.log(require('greeting'), require('fs').readFileSync('node_modules/greeting/made.txt', 'utf8'));",
};

test("a workspace has the commit's files and what they depend on, reaches nothing, and the next one installs nothing", async () => {
  const commit = await place.commit(app);
  const { build, provider, registry } = place;
  await using first = await createWorkspaces(place).open(build, commit, { purpose: "gate" });
  const options = { cwd: projectPath };
  expect(await run(first, ["node", "src/main.js"], options)).toMatchObject({ stdout: "hello by a script\n" });
  expect(await first.info()).toMatchObject({
    labels: { build: build.id, purpose: "gate" },
    network: { registries: false, domains: [], cidrs: [] },
  });

  // Another process, and another commit with the same manifest.
  const next = await place.commit({ "src/main.js": "console.log('other', require('greeting'));", "src/more.js": "" });
  const asked = registry.requests.length;
  await using second = await createWorkspaces(place).open(build, next, { purpose: "gate" });
  expect(await run(second, ["node", "src/main.js"], options)).toMatchObject({ stdout: "other hello\n" });
  expect(registry.requests.slice(asked)).toEqual([]);
  expect((await provider.list()).map(({ id }) => id).sort()).toEqual([first.id, second.id].sort());
});
