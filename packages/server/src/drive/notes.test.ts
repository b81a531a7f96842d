import { mkdtemp, rm } from "node:fs/promises";
import { newId } from "@slipway/contract";
import { openDatabase, openStore } from "@slipway/store";
import { expect, onTestFinished, test } from "vitest";
import { createNotes } from "./notes.ts";

const change = (text: string) => [{ kind: "remote", name: "to-finish", note: text }] as const;

test("a server writes notes as the driver it was last, and of a build that nobody drives", async () => {
  const directory = await mkdtemp("/var/tmp/slipway-notes-");
  onTestFinished(() => rm(directory, { recursive: true }));
  await using database = openDatabase({ url: `file:${directory}/slipway.db` });
  const store = await openStore(database, { now: () => 0 });
  const build = { id: newId("bld"), account: "ada", project: "shop", mode: "new", request: "a shop" } as const;
  await store.builds.create(build, 1, { type: "build.requested" });
  const [first, second] = [createNotes(store, "server-1"), createNotes(store, "server-2")];
  await store.leases.take(build.id, { holder: "server-1", generation: 1 }, 60_000);
  first.drives(build.id, 1);
  await first.note(build.id, change("one"));
  await expect(second.note(build.id, change("two"))).rejects.toMatchObject({ code: "lease_lost" });
  await store.leases.release(build.id, { holder: "server-1", generation: 1 });
  await second.note(build.id, change("two"));
  await store.leases.take(build.id, { holder: "server-2", generation: 2 }, 60_000);
  await expect(first.note(build.id, change("late"))).rejects.toMatchObject({ code: "lease_lost" });
  expect(await store.notes.list(build.id, "remote")).toMatchObject([{ note: "two" }]);
});
