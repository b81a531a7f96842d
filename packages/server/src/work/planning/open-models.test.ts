import { mkdir, readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Store } from "@slipway/engine";
import { openRunLog } from "@slipway/gateway";
import { planner } from "@slipway/gateway/scripted";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { openWorld } from "../../testing/world.ts";
import { openModels, readModelSettings } from "./open-models.ts";

const schema = z.object({ title: z.string() });
const question = { role: "plan", instructions: "You plan.", prompt: "A shop", schema } as const;

async function modelsIn(directory: string, environment: Record<string, string>, { ledger }: Store) {
  return await openModels({
    settings: readModelSettings(environment, directory),
    log: await openRunLog(join(directory, "runs")),
    ledger,
    directory,
    holder: "server-2",
    secret: "a secret of the tests",
    clock: { now: () => Date.now() },
  });
}

test("a scripted program that is not there is told before anything begins", async () => {
  await using site = await openWorld({ model: planner, planning: {} });
  const opened = modelsIn(site.directory, { SLIPWAY_MODEL_JUDGE: "scripted/nobody" }, site.store);
  await expect(opened).rejects.toMatchObject({
    code: "unknown_model",
    message: expect.stringContaining("scripted/planner"),
  });
});

test("questions go by no socket; the scripted model's is its user's alone, also where a killed server has left one", async () => {
  await using site = await openWorld({ model: planner, planning: {} });
  const directory = join(site.directory, "other");
  await mkdir(directory);
  await writeFile(join(directory, "model.sock"), "");
  const umask = process.umask(0);
  onTestFinished(() => void process.umask(umask));
  await using models = await modelsIn(directory, { SLIPWAY_MODEL: "scripted/echo" }, site.store);
  await using roles = await models.forBuild(site.build);
  expect(await roles.ask(question)).toMatchObject({ value: { title: expect.any(String) } });
  const files = await readdir(directory, { withFileTypes: true });
  expect(files.filter((file) => file.isSocket()).map(({ name }) => name)).toEqual(["model.sock"]);
  expect((await stat(join(directory, "model.sock"))).mode & 0o777).toBe(0o600);
});

test("each planning has an account of its own, and all of them spend the build's money", async () => {
  await using site = await openWorld({ model: () => ({ object: { title: "A shop" } }), planning: {} });
  await using one = await site.models.forBuild(site.build);
  await using other = await site.models.forBuild(site.build);
  await Promise.all([one.ask(question), other.ask(question)]);
  expect(site.lines).toHaveLength(2);
  expect(new Set(site.lines.map(({ run }) => run)).size).toBe(2);
  const spentMicroUsd = site.lines.reduce((sum, { microUsd }) => sum + microUsd, 0);
  expect(await site.store.ledger.balance(site.build)).toMatchObject({ spentMicroUsd });
});
