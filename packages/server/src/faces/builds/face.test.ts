import { type BuildRoutes, newId, type Route, routes } from "@slipway/contract";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openWorld, type WorldWith } from "../../testing/world.ts";
import type { Principal } from "../principal.ts";

const ada: Principal = { account: "ada", kind: "local" };
const bob: Principal = { account: "bob", kind: "local" };
const wanted = { request: "a shop", mode: "new", project: "p", settings: {}, hold: "plan", secrets: [] } as const;

let server: WorldWith<"http">;
const id = newId("bld");
beforeAll(async () => {
  server = await openWorld({ http: {} });
  await server.builds.start(ada, { ...wanted, id, secrets: [] });
});
afterAll(() => server[Symbol.asyncDispose]());

const names = Object.entries<Route>(routes.builds).flatMap(([name, { path }]) =>
  path.includes(":build") ? [name as keyof BuildRoutes] : [],
);

test.each(names)("%s answers a build of another account as one that is not there", async (name) => {
  const before = await server.builds.get(ada, id);
  const method = server.builds[name] as (by: Principal, ...given: unknown[]) => Promise<unknown>;
  const missing = newId("bld");
  const told = (await method(bob, missing, {}, "key").catch((error: Error) => error)) as Error;
  expect(told).toMatchObject({ code: "build_not_found" });
  await expect(method(bob, id, {}, "key")).rejects.toMatchObject({
    code: "build_not_found",
    message: told.message.replace(missing, id),
  });
  expect(await server.builds.get(ada, id)).toEqual(before);
});

test("a list has the builds of who asks, and an id of another one's build starts nothing", async () => {
  const query = { limit: 10 };
  expect((await server.builds.list(ada, query)).builds).toMatchObject([{ id }]);
  expect((await server.builds.list(bob, query)).builds).toEqual([]);
  await expect(server.builds.start(bob, { ...wanted, id, secrets: [] })).rejects.toMatchObject({
    code: "idempotency_conflict",
  });
});
