import { expect, test } from "vitest";
import { part, scriptedApp } from "../testing/scripted-app.ts";
import { openWorld } from "../testing/world.ts";

const most = 20;

test("twenty attempts of one build are in sandboxes at Modal at once", async () => {
  let underWay = 0;
  let runningThen = 0;
  const allThere = Promise.withResolvers<void>();
  const tasks = Array.from({ length: most }, (_, index) => {
    const id = `part-${index + 1}`;
    const build = async () => {
      if (++underWay === most) allThere.resolve();
      await allThere.promise;
      runningThen = Math.max(runningThen, world.standIn.running().length);
      return part(id);
    };
    return { id, build };
  });
  await using world = await openWorld({
    standIn: {},
    sandboxes: "local",
    server: { program: scriptedApp(tasks) },
  });
  const build = await world.start({ settings: { slots: most, budgetMicroUsd: 1_000_000_000 } });
  const { status } = await world.ended(build, 1_700_000);
  expect(status, world.warnings.join("\n")).toBe("succeeded");
  expect(runningThen).toBeGreaterThanOrEqual(most);
  for (const { id } of tasks) expect(await world.file(build, `parts/${id}.js`)).toBe(`export default "${id}";\n`);
}, 1_800_000);
