import { join } from "node:path";
import { newId } from "@slipway/contract";
import type { NewEvent } from "@slipway/engine";
import { expect, test } from "vitest";
import { task } from "../../testing/plans.ts";
import { begin, plan } from "../../testing/ticked-build.ts";
import { createRepositories } from "../repository/repositories.ts";
import { createMergeWork } from "./merging.ts";

test("a move of main whose repository is gone is told as none, so that whoever cancels the build waits no longer", async () => {
  const set = await begin();
  const { directory, store, build } = set;
  await plan(set, [task("cart")]);
  const main = { commit: "a".repeat(40), tree: "b".repeat(40) };
  await set.tell("main.made", main, "main");
  await set.turn();
  const told = Promise.withResolvers<readonly NewEvent[]>();
  const unused = () => expect.unreachable();
  await using merging = createMergeWork({
    store,
    clock: { now: () => 0 },
    warn: unused,
    onMain: unused,
    repositories: createRepositories({ directory: join(directory, "builds"), environment: process.env }),
    gates: { run: unused, check: unused } as never,
    preview: { follow: unused, close: unused },
    report: async (_, events) => told.resolve(events),
  });
  const candidate = newId("cnd");
  const to = { to: "c".repeat(40), tree: "d".repeat(40) };
  const move = { type: "merge", candidate, task: "cart", from: main.commit, ...to } as const;
  await merging.carryOut(await store.builds.get(build), [move]);
  expect(await told.promise).toMatchObject([{ type: "merge.ended", data: { candidate, merged: false, main } }]);
});
