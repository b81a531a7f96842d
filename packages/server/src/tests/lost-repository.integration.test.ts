import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import type { BuildId } from "@slipway/contract";
import { expect, onTestFinished, test, vi } from "vitest";
import { localUser } from "../faces/principal.ts";
import { attemptAt } from "../testing/plans.ts";
import { scriptedApp } from "../testing/scripted-app.ts";
import type { WorldWith } from "../testing/world.ts";
import { openWorld } from "../testing/world.ts";

vi.setConfig({ testTimeout: 300_000 });
const patience = { timeout: 120_000, interval: 100 };
const answer = scriptedApp([]);

/** A build whose first agent waits for its model. */
async function begin(directory: string) {
  const asked = Promise.withResolvers<void>();
  const builds = await openWorld({
    directory,
    sandboxes: "local",
    server: {
      async program(request) {
        if (request.answerSchema !== undefined) return await answer(request);
        asked.resolve();
        return await new Promise(() => {});
      },
    },
  });
  const build = await builds.start({});
  await asked.promise;
  return { builds, build };
}

async function expectCancelled({ server, provider }: WorldWith<"server">, build: BuildId) {
  expect(await server.face.get(localUser, build)).toMatchObject({ repositoryMissing: true, endedAt: null });
  await server.face.cancel(localUser, build);
  await vi.waitFor(async () => {
    expect(await server.face.get(localUser, build)).toMatchObject({ status: "cancelled", repositoryMissing: true });
  }, patience);
  await vi.waitFor(async () => expect((await server.store.leases.find(build)).holder).toBe(null), patience);
  expect(await provider.list()).toEqual([]);
}

async function newDirectory(): Promise<string> {
  const directory = await mkdtemp("/var/tmp/slipway-lost-");
  onTestFinished(() => rm(directory, { recursive: true, force: true, maxRetries: 10 }));
  return directory;
}

const remove = (directory: string, build: BuildId) =>
  rm(join(directory, "state/builds", build), { recursive: true, force: true, maxRetries: 10 });

test("a build that loses its repository while it works says so, and can be cancelled", async () => {
  const directory = await newDirectory();
  const { builds, build } = await begin(directory);
  await using _ = builds;
  expect(await builds.server.face.get(localUser, build)).toMatchObject({ repositoryMissing: false });
  await remove(directory, build);
  await expectCancelled(builds, build);
});

test("an attempt that finds its build's repository gone has not failed: it is interrupted, and says why", async () => {
  await using site = await openWorld({ sandboxes: "local", model: () => ({ text: "Done." }), attempts: {} });
  const { attempts, build, repositories } = site;
  await attempts.makeMain(build);
  await rm(repositories.directoryOf(build.id), { recursive: true, maxRetries: 10 });
  await attempts.carryOut(build, [attemptAt("list")]);
  const { end } = await site.reported("attempt.ended");
  expect(end).toMatchObject({ reason: "unavailable", message: expect.stringContaining("has no main") });
});

test("a build whose repository is gone when its server begins is left alone, says so, and can be cancelled", async () => {
  const directory = await newDirectory();
  const { builds: first, build } = await begin(directory);
  await first[Symbol.asyncDispose]();
  await remove(directory, build);
  await using builds = await openWorld({ directory, sandboxes: "local", server: { program: answer } });
  await vi.waitFor(() => expect(builds.warnings.join()).toContain(`Cannot drive ${build} here`), patience);
  await expectCancelled(builds, build);
  const told = await builds.events(build);
  expect(told.filter(({ type }) => type === "main.made")).toHaveLength(1);
});
