import { mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newId } from "@slipway/contract";
import { expect, onTestFinished, test } from "vitest";
import { openBuildSecrets } from "./build-secrets.ts";

const secret = { host: "api.example.com", header: "authorization", value: "Bearer t0p" };

async function open() {
  const directory = await mkdtemp(join(tmpdir(), "slipway-secrets-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  return { directory, build: newId("bld"), secrets: openBuildSecrets(directory) };
}

test("a build's secrets are in a file that its user alone reads, for the next process, too, until they are removed", async () => {
  const { directory, build, secrets } = await open();
  expect(await secrets.of(build)).toEqual([]);
  await secrets.keep(build, [secret]);
  expect((await stat(join(directory, build, "secrets.json"))).mode & 0o777).toBe(0o600);
  const next = openBuildSecrets(directory);
  expect(await next.of(build)).toEqual([secret]);
  expect(await next.of(newId("bld"))).toEqual([]);
  await next.remove(build);
  await next.remove(build);
  expect(await readdir(join(directory, build))).toEqual([]);
});

test("those of builds that nobody wants any more are swept, half written or not", async () => {
  const { directory, build, secrets } = await open();
  const [other, torn] = [newId("bld"), newId("bld")];
  for (const one of [build, other, torn]) await secrets.keep(one, [secret]);
  await secrets.remove(torn);
  await writeFile(join(directory, torn, "secrets.json.new"), "[");
  await secrets.sweep(async (one) => one === build);
  expect(await secrets.of(build)).toEqual([secret]);
  for (const one of [other, torn]) expect(await readdir(join(directory, one))).toEqual([]);
});

test("a file that can not be read is told without a word of what is in it", async () => {
  const { directory, build, secrets } = await open();
  await secrets.keep(build, [secret]);
  await writeFile(join(directory, build, "secrets.json"), `[{"value":"${secret.value}`);
  const failure = await secrets.of(build).catch((error: Error) => error);
  expect(failure).toMatchObject({ code: "internal", message: expect.not.stringContaining("t0p") });
  expect((failure as Error).cause).toBeUndefined();
});
