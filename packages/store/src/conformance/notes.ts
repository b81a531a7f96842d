import { expect, test } from "vitest";
import { drivenBuild, driver, leaseMs } from "./context.ts";
import type { OpenedStore } from "./subject.ts";

export function describeNotes(opened: () => OpenedStore): void {
  const note = (name: string, value: string | null) => ({ kind: "attempt" as const, name, note: value });
  const other = { holder: "server-2", generation: 2 };

  test("notes are replaced and removed by their names, together", async () => {
    const { store } = opened();
    const [build, neighbour] = [await drivenBuild(store), await drivenBuild(store)];
    await store.notes.write(neighbour, driver, [note("a", "theirs")]);
    await store.notes.write(build, driver, [
      note("b", "one\0"),
      note("a", "two"),
      { ...note("a", "3"), kind: "remote" },
    ]);
    await store.notes.write(build, driver, [note("b", null), note("a", "four"), note("c", null)]);
    expect(await store.notes.list(build, "attempt")).toEqual([{ build, ...note("a", "four") }]);
    expect(await store.notes.list(build, "remote")).toEqual([{ build, ...note("a", "3"), kind: "remote" }]);
    const halfBad = [note("a", "five"), note("", "six")];
    await expect(store.notes.write(build, driver, halfBad)).rejects.toMatchObject({ code: "invalid_request" });
    expect(await store.notes.list(build, "attempt")).toEqual([{ build, ...note("a", "four") }]);
  });

  test("a server that has lost the build writes no note, even when its successor has released the lease", async () => {
    const { store } = opened();
    const build = await drivenBuild(store);
    await store.notes.write(build, driver, [note("a", "first")]);
    await store.leases.take(build, other, leaseMs);
    const lost = { code: "lease_lost" };
    await expect(store.notes.write(build, driver, [note("a", "late")])).rejects.toMatchObject(lost);
    await store.leases.release(build, other);
    await expect(store.notes.write(build, driver, [note("a", null)])).rejects.toMatchObject(lost);
    await store.notes.write(build, other, [note("b", "second")]);
    expect((await store.notes.list(build, "attempt")).map(({ name }) => name)).toEqual(["a", "b"]);
  });

  test("a note does not renew the lease", async () => {
    const { store, clock } = opened();
    const build = await drivenBuild(store);
    clock.advance(leaseMs - 1);
    await store.notes.write(build, driver, [note("a", "first")]);
    expect(await store.leases.find(build)).toMatchObject({ ...driver, leftMs: 1 });
  });
}
