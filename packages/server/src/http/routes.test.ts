import { apiLimits, errorTable, newId, parametersOf, type Route, routeParameters, routes } from "@slipway/contract";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openWorld, type WorldWith } from "../testing/world.ts";
import type { Asking } from "./testing.ts";

const all = Object.values(routes).flatMap((group) => Object.entries<Route>(group));
const path = ({ path }: Route, build = newId("bld")) =>
  path.replace(":build", build).replace(":branch", newId("att")).replace(":dispute", "1");
const bodies: Readonly<Record<string, object>> = {
  start: { request: "another" },
  setBudget: { budgetMicroUsd: 5_000_000 },
  settleDispute: { wrong: "app", because: "It shows nothing." },
};
const headersOf = ({ events }: Route): Record<string, string> =>
  events === undefined ? {} : { accept: "text/event-stream" };

let server: WorldWith<"http">;
let build: string;
beforeAll(async () => {
  server = await openWorld({ http: {} });
  build = (await server.ask("POST", "/v1/builds", { body: { request: "a shop", hold: "both" } })).body.id;
});
afterAll(() => server[Symbol.asyncDispose]());

const ask = (route: Route, to: string, { headers, ...asking }: Asking = {}) =>
  server.ask(route.method, to, { ...asking, headers: { ...headersOf(route), ...headers } });
const refused = async (...asked: Parameters<typeof ask>) => {
  const { status, body } = await ask(...asked);
  return { status, code: body.error?.code, message: body.error?.message };
};

describe.each(all)("%s", (name, route) => {
  test("answers as its schema says, or with an error that the table names", async () => {
    // A stream goes on until the build ends.
    const after = route.events === undefined ? {} : { headers: { "last-event-id": "999" } };
    const body = bodies[name] ?? {};
    const query = name === "file" ? "?path=README.md" : "";
    const answer = await ask(route, `${path(route, build as never)}${query}`, { body: route.body && body, ...after });
    if (answer.status < 300) {
      expect(answer.status).toBe(route.status ?? 200);
      expect(route.output?.safeParse(answer.body)).toMatchObject({ success: true });
      return;
    }
    const missing = parametersOf(route.path).map((parameter) => routeParameters[parameter].missing);
    const named = [...(route.errors ?? []), ...missing.slice(1), ...(route.events ? ["invalid_request"] : [])];
    expect(named).toContain(answer.body.error.code);
    expect(answer.status).toBe(errorTable[answer.body.error.code as keyof typeof errorTable].status);
  });

  test("gives nothing to whom nobody knows", async () => {
    const request = new Request(`http://x${path(route, build as never)}`, { method: route.method });
    const answer = await server.app().fetch(request, {});
    expect({ status: answer.status, body: await answer.json() }).toMatchObject({
      status: 401,
      body: { error: { code: "unauthenticated" } },
    });
  });
});

const ofBuilds = all.filter(([, { path }]) => path.includes(":build"));

test.each(ofBuilds)("%s of a build that there is not, or of what is no id, is not found", async (name, route) => {
  const given = { body: route.body && (bodies[name] ?? {}) };
  const query = name === "file" ? "?path=a" : "";
  for (const id of [newId("bld"), "nothing", "..%2f..%2fx"]) {
    expect(await refused(route, `${path(route, id as never)}${query}`, given)).toMatchObject({
      status: 404,
      code: "build_not_found",
    });
  }
});

test.each(all.filter(([, { body }]) => body !== undefined))("%s reads no body that is too large", async (_, route) => {
  const body = JSON.stringify({ request: "x".repeat(apiLimits.maxBodyBytes) });
  expect(await refused(route, path(route), { body })).toMatchObject({ status: 413, code: "too_large" });
});

test("a request is told all that is wrong with it at once", async () => {
  const list = await refused(routes.builds.list, "/v1/builds?limit=0&status=asleep&page=2");
  expect(list.message).toMatch(/status: .*limit: .*page/s);
  const budget = await refused(routes.builds.setBudget, path(routes.builds.setBudget), {
    body: { budgetMicroUsd: 0, resume: "yes" },
    headers: { "idempotency-key": "a b" },
  });
  expect(budget.message).toMatch(/budgetMicroUsd: .*resume: .*letters and digits/s);
  const follow = await refused(routes.builds.follow, `${path(routes.builds.follow)}?limit=x`, {
    headers: { "last-event-id": "x" },
  });
  expect(follow.message).toMatch(/limit: .*number of an event/s);
  const start = await refused(routes.builds.start, "/v1/builds", { body: "{", headers: { "idempotency-key": "a b" } });
  expect(start.message).toMatch(/not JSON.*letters and digits/s);
});
