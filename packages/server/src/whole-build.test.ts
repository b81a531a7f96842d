import { expect, test } from "vitest";
import { scriptedApp } from "./testing/scripted-app.ts";
import { openWholeBuilds } from "./testing/whole-builds.ts";

test("a build of three tasks ends with all of them on main, the criteria seen, a preview, and nothing left", async () => {
  await using builds = await openWholeBuilds({ program: scriptedApp([{ id: "cart" }, { id: "pay" }]) });
  const build = await builds.start({});
  const view = await builds.ended(build);
  const events = await builds.events(build);
  const told = events.map(({ type, data }) => `${type} ${JSON.stringify(data).slice(0, 200)}`).slice(-12);
  expect(view.status, [...told, ...builds.warnings].join("\n")).toBe("succeeded");
  expect(await builds.file(build, "parts/cart.js")).toBe('export default "cart";\n');
  expect(await builds.file(build, "parts/pay.js")).toBe('export default "pay";\n');
  expect(view.criteria.every(({ satisfied }) => satisfied)).toBe(true);
  const shown = await fetch(`${view.preview}cart`);
  expect(await shown.text()).toBe("cart");
  const left = await builds.provider.list();
  expect(left.map(({ labels }) => labels["purpose"])).toEqual(["preview"]);
  expect(view.money.reservedMicroUsd).toBe(0);
}, 600_000);
