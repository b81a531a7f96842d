import { expect, test } from "vitest";
import { setUp } from "./testing.ts";

test("200 sandboxes are created at once, are all listed, and are all ended", async () => {
  await using setup = await setUp({ processes: false });
  const { modal, standIn } = setup;
  const app = await modal.apps.fromName("many", { createIfMissing: true });
  const image = await modal.images.fromRegistry("debian").build(app);
  const create = () => modal.sandboxes.create(app, image, { command: ["sleep", "60"], encryptedPorts: [8000] });
  const sandboxes = await Promise.all(Array.from({ length: 200 }, create));
  expect(new Set(sandboxes.map(({ sandboxId }) => sandboxId)).size).toBe(200);
  expect(standIn.running()).toHaveLength(200);
  const listed: string[] = [];
  for await (const { sandboxId } of modal.sandboxes.list({ appId: app.appId })) listed.push(sandboxId);
  expect(listed.sort()).toEqual(sandboxes.map(({ sandboxId }) => sandboxId).sort());
  await Promise.all(sandboxes.map((sandbox) => sandbox.terminate()));
  expect(standIn.running()).toEqual([]);
});

test("a list of 20,000 sandboxes names each once", async () => {
  await using setup = await setUp({ processes: false });
  const { modal, standIn } = setup;
  await standIn.populate(20_000, "many", { owner: "me" });
  const app = await modal.apps.fromName("many");
  const seen = new Set<string>();
  let listed = 0;
  for await (const { sandboxId } of modal.sandboxes.list({ appId: app.appId, tags: { owner: "me" } })) {
    seen.add(sandboxId);
    listed += 1;
  }
  expect([listed, seen.size]).toEqual([20_000, 20_000]);
  expect(standIn.calls.get("SandboxListV2")).toBe(201);
});
