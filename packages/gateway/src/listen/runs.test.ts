import { newId } from "@slipway/contract";
import { expect, test } from "vitest";
import { ask, startTestGateway, testTask } from "../testing/gateway.ts";

const budgetMicroUsd = 1_000_000;

test("the judge is never given to a run with agents, and given to the host's own calls", async () => {
  await using set = await startTestGateway();
  const grant = { id: newId("run"), roles: ["build", "judge"] as const, budgetMicroUsd };
  await expect(set.gateway.openRun({ ...grant, task: testTask })).rejects.toMatchObject({ code: "role_forbidden" });
  await using calls = await set.gateway.openCalls(grant);
  expect(calls.model("judge")).toBe("test/judge-model");
  expect(await set.post("/v1/messages", ask({ model: "judge" }), { token: calls.token })).toMatchObject({
    status: 200,
  });
  expect(await set.post("/v1/messages", ask({ model: "judge" }))).toMatchObject({ status: 403 });
});

test("a run whose task is wrong is not opened at all", async () => {
  await using set = await startTestGateway();
  const grant = { id: newId("run"), roles: ["build"] as const, budgetMicroUsd };
  const wrong = { ...testTask, agent: "nobody" };
  await expect(set.gateway.openRun({ ...grant, task: wrong })).rejects.toMatchObject({ code: "invalid_request" });
  await using run = await set.gateway.openRun({ ...grant, task: testTask });
  expect(run.task).toMatchObject({ agent: "builtin", workdir: "/workspace" });
});

test("a run is open once, and can be opened again after it was let go of", async () => {
  await using set = await startTestGateway();
  const grant = { id: newId("run"), roles: ["build"] as const, budgetMicroUsd, task: testTask };
  const first = await set.gateway.openRun(grant);
  await expect(set.gateway.openRun(grant)).rejects.toMatchObject({ code: "invalid_request" });
  await first[Symbol.asyncDispose]();
  expect(await set.post("/v1/messages", ask(), { token: first.token })).toMatchObject({ status: 503 });
  await using second = await set.gateway.openRun(grant);
  expect(await set.post("/v1/messages", ask(), { token: second.token })).toMatchObject({ status: 200 });
});

test("of a run that has spent something and is opened again it is known that an answer may be lost", async () => {
  await using set = await startTestGateway();
  const grant = { id: newId("run"), roles: ["build"] as const, budgetMicroUsd, task: testTask };
  const first = await set.gateway.openRun(grant);
  expect(first.lastFailure()).toBeUndefined();
  await set.post("/v1/messages", ask(), { token: first.token });
  expect(first.lastFailure()).toBeUndefined();
  await first[Symbol.asyncDispose]();
  await using second = await set.gateway.openRun(grant);
  expect(second.lastFailure()).toMatchObject({ code: "model_unreachable" });
  expect(second.lastResponse()).toBeUndefined();
  await set.post("/v1/messages", ask(), { token: second.token });
  expect(second.lastFailure()).toBeUndefined();
});

test("a run that is opened again has run out of money only if it has", async () => {
  await using set = await startTestGateway();
  const grant = { id: newId("run"), roles: ["build"] as const, budgetMicroUsd, task: testTask };
  const reopened = async () => {
    await using run = await set.gateway.openRun(grant);
    await set.post("/v1/messages", ask(), { token: run.token });
    return await run.ranOut();
  };
  expect([await reopened(), await reopened()]).toEqual([false, false]);
  await set.ledger.reserve({ request: "spent", run: grant.id, microUsd: 900_000 });
  expect(await reopened()).toBe(true);
});

test("a run's model is known by its role only", async () => {
  await using set = await startTestGateway();
  expect(set.run.model("build")).toBe("test/build-model");
  expect(() => set.run.model("plan")).toThrow(expect.objectContaining({ code: "role_forbidden" }));
});
