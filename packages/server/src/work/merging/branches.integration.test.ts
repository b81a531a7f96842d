import { join } from "node:path";
import { newId } from "@slipway/contract";
import { expect, test } from "vitest";
import { openWorld } from "../../testing/world.ts";
import { openBuildRepository } from "../repository/repository.ts";
import { branch, newCandidate } from "../repository/testing.ts";
import { dropBranches } from "./branches.ts";

test("a build that has ended keeps the branches of tasks that are not on main, and no others", async () => {
  await using site = await openWorld({ repository: "small" });
  const [merged, returned, failed, unknown] = [newCandidate(), newCandidate(), newCandidate(), newCandidate()];
  const made = async (name: string) => {
    const commit = await site.sandbox.commit({ files: { [name]: "1\n" }, parents: [site.main] });
    return { commit, bundle: site.sandbox.bundle(commit, { needs: [site.main] }) };
  };
  let commit = "";
  for (const id of [merged, returned, unknown, failed]) {
    const { bundle, commit: last } = await made(id);
    await site.take(bundle, { id });
    commit = last;
  }
  const candidates = [
    { id: merged, task: "cart", commit: "1" },
    { id: returned, task: "cart", commit: "2" },
    { id: failed, task: "pay", commit },
  ];
  const [ofMerged, unoffered, offered, stray] = [newId("att"), newId("att"), newId("att"), newId("att")];
  for (const attempt of [ofMerged, unoffered, stray]) {
    await site.repository.takeOpen((await made(attempt)).bundle, { attempt, ref: branch });
  }
  const again = site.repository.bundle({ base: site.main, tip: commit, ref: branch });
  await site.repository.takeOpen(again, { attempt: offered, ref: branch });
  const attempts = [
    { id: ofMerged, task: "cart" },
    { id: unoffered, task: "pay" },
    { id: offered, task: "pay" },
  ];
  for (const _ of [1, 2]) await dropBranches(site.repository, { merges: [{ task: "cart" }], candidates, attempts });
  expect([...(await site.repository.candidates()).keys()]).toEqual([failed]);
  expect([...(await site.repository.openBranches()).keys()]).toEqual([unoffered]);
});

test("a build that ended before it had a repository has no branches to let go of", async () => {
  await using site = await openWorld({ repository: "small" });
  const environment = { PATH: process.env["PATH"] };
  const repository = await openBuildRepository({ directory: join(site.directory, "none"), environment });
  await expect(dropBranches(repository, { merges: [], candidates: [], attempts: [] })).resolves.toBeUndefined();
});
