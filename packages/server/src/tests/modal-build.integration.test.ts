import { expect, test, vi } from "vitest";
import { computePriceOf } from "../compute-price.ts";
import { localUser } from "../faces/principal.ts";
import { examineComputeMoney } from "../testing/examine-compute.ts";
import { scriptedApp } from "../testing/scripted-app.ts";
import { modelSettings } from "../testing/world/model.ts";
import { openWorld } from "../testing/world.ts";

test("a build on Modal ends with its work on main, pays what Modal counts, and leaves nothing there", async () => {
  const price = computePriceOf({ models: modelSettings("/nowhere"), provider: "modal" });
  await using world = await openWorld({
    standIn: {},
    sandboxes: "local",
    server: { program: scriptedApp([{ id: "cart" }]), price },
  });
  const { server, standIn } = world;
  const build = await world.start({ settings: { budgetMicroUsd: 100_000_000 } });
  const view = await world.ended(build);
  const told = (await world.events(build)).map(({ type, data }) => `${type} ${JSON.stringify(data).slice(0, 300)}`);
  expect(view.status, [...told.slice(-30), ...world.warnings].join("\n")).toBe("succeeded");
  expect(await world.file(build, "parts/cart.js")).toBe('export default "cart";\n');
  await vi.waitFor(async () => expect(await world.shown(build, "cart")).toBe("cart"), { timeout: 30_000 });
  await server.face.closePreview(localUser, build);
  await vi.waitFor(async () => expect(await world.provider.list()).toEqual([]), { timeout: 30_000 });
  await vi.waitFor(() => expect(standIn.running()).toEqual([]), { timeout: 30_000 });
  await examineComputeMoney({ ledger: server.store.ledger, standIn }, build);
}, 300_000);
