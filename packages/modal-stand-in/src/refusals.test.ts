import { ClientError, Status } from "nice-grpc";
import { afterAll, beforeAll, expect, test } from "vitest";
import { connectTo, type Setup, setUp } from "./testing.ts";

let setup: Setup;
beforeAll(async () => {
  setup = await setUp({ processes: false });
});
afterAll(() => setup[Symbol.asyncDispose]());

async function refusedWith(params: object): Promise<string> {
  const { modal } = setup;
  const app = await modal.apps.fromName("refusals", { createIfMissing: true });
  const created = modal.sandboxes.create(app, modal.images.fromRegistry("debian"), params);
  return await created.then(
    () => "made",
    (error: unknown) => (error instanceof ClientError ? `${Status[error.code]} ${error.details}` : String(error)),
  );
}

test.each([
  [{ timeoutMs: 86_401_000 }, /^INVALID_ARGUMENT Invalid timeout: 86401 s/],
  [{ gpu: "RTX9000" }, /^INVALID_ARGUMENT Invalid GPU type: RTX9000/],
  [{ regions: ["atlantis"] }, /^INVALID_ARGUMENT Invalid region: atlantis/],
  [{ cloud: "garage" }, /^INVALID_ARGUMENT Invalid cloud provider: garage/],
  [{ outboundCidrAllowlist: ["10.0.0.0/33"] }, /^INVALID_ARGUMENT Invalid CIDR: 10.0.0.0\/33/],
  [{ outboundDomainAllowlist: ["not a domain"] }, /^INVALID_ARGUMENT Invalid domain: not a domain/],
  [{ inboundCidrAllowlist: ["here"] }, /^INVALID_ARGUMENT Invalid CIDR: here/],
])("%o is refused, and nothing is left", async (params, words) => {
  expect(await refusedWith(params)).toMatch(words);
  expect(setup.standIn.running()).toEqual([]);
});

test.each(["../other", "a/../../b"])("a volume's sub path %s is refused", async (subPath) => {
  const volume = await setup.modal.volumes.fromName("refusals", { createIfMissing: true });
  const volumes = { "/mnt": volume.withMountOptions({ subPath }) };
  expect(await refusedWith({ volumes })).toMatch(/(Invalid sub ?path|subPath)/i);
});

test("a known GPU makes a sandbox of the first generation, which is listed, named and ended like others", async () => {
  const { modal, standIn } = setup;
  const app = await modal.apps.fromName("refusals", { createIfMissing: true });
  const image = modal.images.fromRegistry("debian");
  const sandbox = await modal.sandboxes.create(app, image, { gpu: "H100:2", name: "first", tags: { kind: "gpu" } });
  expect(sandbox.sandboxId).toMatch(/^sb-[0-9A-Za-z]{22}$/);
  expect(await (await sandbox.exec(["true"])).wait()).toBe(0);
  expect(await sandbox.getTags()).toEqual({ kind: "gpu" });
  expect((await modal.sandboxes.fromName("refusals", "first")).sandboxId).toBe(sandbox.sandboxId);
  const listed = [];
  for await (const { sandboxId } of modal.sandboxes.list({ appId: app.appId })) listed.push(sandboxId);
  expect(listed).toEqual([sandbox.sandboxId]);
  expect(standIn.accounting.usage().at(-1)?.gpu).toEqual({ type: "H100", count: 2 });
  expect(await sandbox.terminate({ wait: true })).toBe(137);
});

test.each([
  ["ak-other", "as-other"],
  ["", ""],
])("the tokens %o and %o are not accepted", async (tokenId, tokenSecret) => {
  const { url } = setup.standIn;
  const open = async () => {
    const modal = connectTo(
      { url, tokenId, tokenSecret },
      { MODAL_TOKEN_ID: tokenId, MODAL_TOKEN_SECRET: tokenSecret },
    );
    await modal.apps.fromName("refusals", { createIfMissing: true });
  };
  await expect(open()).rejects.toThrow(/UNAUTHENTICATED|missing/);
});

test("what does not exist is not found, and a method that the stand-in lacks says so", async () => {
  const { modal } = setup;
  await expect(modal.apps.fromName("nowhere")).rejects.toThrow("not found");
  await expect(modal.secrets.fromName("nowhere")).rejects.toThrow("Secret 'nowhere' not found");
  await expect(modal.volumes.fromName("nowhere")).rejects.toThrow("Volume 'nowhere' not found");
  await expect(modal.images.fromId("im-nowhere")).rejects.toMatchObject({ name: "NotFoundError" });
  await expect(modal.queues.fromName("nowhere")).rejects.toThrow("The Modal stand-in has no QueueGetOrCreate");
});
