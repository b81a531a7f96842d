import { join } from "node:path";
import { expect, test } from "vitest";
import { openBuildRepository } from "../repository/repository.ts";
import { newCandidate, openSite } from "../repository/testing.ts";
import { dropBranches } from "./branches.ts";

test("a build that has ended keeps the branches of tasks that are not on main, and no others", async () => {
  await using site = await openSite();
  const [merged, returned, failed, unknown] = [newCandidate(), newCandidate(), newCandidate(), newCandidate()];
  for (const id of [merged, returned, failed, unknown]) {
    const commit = await site.sandbox.commit({ files: { [id]: "1\n" }, parents: [site.main] });
    await site.take(site.sandbox.bundle(commit, { needs: [site.main] }), { id });
  }
  const candidates = [
    { id: merged, task: "cart" },
    { id: returned, task: "cart" },
    { id: failed, task: "pay" },
  ];
  for (const _ of [1, 2]) await dropBranches(site.repository, { merges: [{ task: "cart" }], candidates });
  expect([...(await site.repository.candidates()).keys()]).toEqual([failed]);
});

test("a build that ended before it had a repository has no branches to let go of", async () => {
  await using site = await openSite();
  const environment = { PATH: process.env["PATH"] };
  const repository = await openBuildRepository({ directory: join(site.directory, "none"), environment });
  await expect(dropBranches(repository, { merges: [], candidates: [] })).resolves.toBeUndefined();
});
