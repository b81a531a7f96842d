import { fileURLToPath } from "node:url";
import { expect, test, vi } from "vitest";
import { localUser } from "../faces/principal.ts";
import { scriptedApp } from "../testing/scripted-app.ts";
import { openWorld } from "../testing/world.ts";

/** Where set-up puts other people's agents for tests. */
const agents = fileURLToPath(new URL("../../../../scripts/test-agents", import.meta.url));

test("the claude program builds what the built-in agent does", async () => {
  await using builds = await openWorld({ sandboxes: { agents }, server: { program: scriptedApp([{ id: "cart" }]) } });
  const build = await builds.start({ settings: { agent: "claude-code" } });
  const view = await builds.ended(build, 500_000);
  const told = (await builds.events(build)).map(({ type, data }) => `${type} ${JSON.stringify(data).slice(0, 300)}`);
  expect(view.status, [...told.slice(-15), ...builds.warnings].join("\n")).toBe("succeeded");
  expect(view.taskList.map(({ id, status }) => `${id} ${status}`)).toEqual(["base merged", "cart merged"]);
  expect(await builds.file(build, "parts/cart.js")).toBe('export default "cart";\n');
  await vi.waitFor(async () => expect(await builds.shown(build, "cart")).toBe("cart"));
  const { by } = await builds.server.face.costs(localUser, build);
  expect(by.agent.map(({ of }) => of)).toContain("claude-code");
}, 600_000);
