import { join } from "node:path";
import { newId, type SandboxId } from "@slipway/contract";
import { projectPath, readText } from "@slipway/sandbox";
import { openUsedPorts } from "@slipway/sandbox/local/preview";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { openWorld, type WorldWith } from "../../testing/world.ts";
import { createWorkspaces } from "../workspaces/workspaces.ts";
import { createPreviews } from "./preview.ts";

let place: WorldWith<"registry" | "sandboxes" | "repository">;
beforeAll(async () => {
  place = await openWorld({ registry: {}, sandboxes: "local", repository: "empty" });
});
afterAll(() => place[Symbol.asyncDispose]());

/** Takes every request and answers none. */
const silent = {
  "package.json": JSON.stringify({ name: "app", private: true, scripts: { dev: "node server.js" } }),
  "server.js": `
const { createServer } = require("node:http");
createServer(() => require("node:fs").writeFileSync("heard", "")).listen(Number(process.env.PORT), "127.0.0.1");
`,
};

function openPreviews(readyMs: number) {
  const troubles: string[] = [];
  const previews = createPreviews({
    ...place,
    workspaces: createWorkspaces(place),
    directory: join(place.directory, "builds"),
    readyMs,
    usedPorts: openUsedPorts(join(place.directory, "ports")),
    insteadOf: async () => "",
    isUnderway: async () => true,
    onReady: () => {},
    onTrouble: (_, reason) => troubles.push(reason),
  });
  return { previews, troubles };
}

test("a dev server that takes requests and answers none is told as one that does not answer", async () => {
  const build = { ...place.build, id: newId("bld") };
  const { previews, troubles } = openPreviews(20_000);
  await using _ = previews;
  await previews.follow(build, await place.commit(silent));
  expect(troubles).toEqual([expect.stringContaining("did not answer on port 5173 within 20000 ms")]);
  await previews.close(build);
});

test("a preview that waits for such a server closes at once", async () => {
  const build = { ...place.build, id: newId("bld") };
  const { previews, troubles } = openPreviews(3_600_000);
  await using _ = previews;
  const following = previews.follow(build, await place.commit(silent));
  await vi.waitFor(
    async () => {
      const [info] = await place.provider.list({ labels: { build: build.id } });
      const sandbox = await place.provider.get(info?.id as SandboxId);
      expect(await readText(sandbox.files, `${projectPath}/heard`)).toBe("");
    },
    { timeout: 60_000, interval: 200 },
  );
  await previews.close(build);
  await following;
  expect(troubles).toEqual([]);
  expect(await place.provider.list({ labels: { build: build.id } })).toEqual([]);
});
