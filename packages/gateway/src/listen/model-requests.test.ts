import { newId } from "@slipway/contract";
import { expect, test } from "vitest";
import { ask, startTestGateway, testTask } from "../testing/gateway.ts";

const countPath = "/v1/messages/count_tokens";
const large = ask({ system: "x".repeat(30 * 1024 * 1024) });

test("a run that sends more than it may is told when to come back, whatever it asks, and no other run is", async () => {
  let now = 0;
  await using set = await startTestGateway({ clock: { now: () => now } });
  for (let sent = 0; sent < 2; sent++) expect(await set.post(countPath, large)).toMatchObject({ status: 200 });
  const refused = await set.post(countPath, large);
  expect(refused).toMatchObject({ status: 429, headers: { "retry-after": "4", "x-should-retry": "true" } });
  expect(refused.text).toContain("model_rate_limited");
  expect(await set.post("/v1/messages", large)).toMatchObject({ status: 429 });
  expect(set.upstream.seen).toHaveLength(0);
  const grant = { id: newId("run"), roles: ["build"] as const, budgetMicroUsd: 1_000_000, task: testTask };
  await using other = await set.gateway.openRun(grant);
  expect(await set.post(countPath, large, { token: other.token })).toMatchObject({ status: 200 });
  now += 4000;
  expect(await set.post(countPath, large)).toMatchObject({ status: 200 });
});

test("requests of a usual size are not held up, however many come", async () => {
  await using set = await startTestGateway({ clock: { now: () => 0 } });
  const usual = ask({ system: "x".repeat(200_000) });
  for (let sent = 0; sent < 100; sent++) expect(await set.post(countPath, usual)).toMatchObject({ status: 200 });
});

test("small requests count, too", async () => {
  await using set = await startTestGateway({ clock: { now: () => 0 } });
  for (let sent = 0; sent < 2; sent++) expect(await set.post(countPath, large)).toMatchObject({ status: 200 });
  const statuses = new Set<number>();
  for (let sent = 0; sent < 1025; sent++) statuses.add((await set.post(countPath, ask())).status);
  expect(statuses).toEqual(new Set([200, 429]));
});
