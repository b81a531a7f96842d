import { expect, test } from "vitest";
import { openWorld } from "../testing/world.ts";
import { createNotes } from "./notes.ts";

const change = (text: string) => [{ kind: "remote", name: "to-finish", note: text }] as const;

test("a server writes notes as the driver it was last, and of a build that nobody drives", async () => {
  await using world = await openWorld({ store: {} });
  const { store } = world;
  const build = await world.create();
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
