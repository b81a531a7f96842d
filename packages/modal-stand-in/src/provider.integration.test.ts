import { setTimeout as delay } from "node:timers/promises";
import { hasCode, newId, type SandboxId } from "@slipway/contract";
import { type OwnedSandbox, readText, run, type SandboxProvider } from "@slipway/sandbox";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { type ModalSetup, openModal } from "./testing/provider.ts";

let modal: ModalSetup;
beforeAll(async () => {
  modal = await openModal();
  await modal.provider.prepareImage("default");
});
afterAll(async () => await modal[Symbol.asyncDispose]());
afterEach(() => modal.standIn.faults.clear());

const small = { cpu: 1, memoryMb: 512, idleMs: null } as const;
const soon = { timeout: 60_000, interval: 50 };

/** Modal's id of the only sandbox that runs there. */
function onlyRunning(): string {
  const [id = "", ...others] = modal.standIn.running();
  expect(others).toEqual([]);
  return id;
}

async function untilNothingRuns(): Promise<void> {
  await vi.waitFor(() => expect(modal.standIn.running()).toEqual([]), soon);
}

describe("trust", () => {
  test("a command can neither write nor replace its own log and exit, nor stop what keeps them", async () => {
    await using sandbox = await modal.provider.create(small);
    const id = newId("exc");
    const attempts = [
      `ls /var/lib/slipway/${sandbox.id}`,
      `echo forged >> /var/lib/slipway/${sandbox.id}/execs/${id}`,
      `rm -f /var/lib/slipway/${sandbox.id}/execs/${id}`,
      `mv /var/lib/slipway/${sandbox.id} /tmp/mine`,
      "mv /var/lib/slipway /tmp/mine",
      "ln -sfn /tmp /var/lib/slipway",
      "mv /opt/slipway /tmp/mine",
      "touch /opt/slipway/store/mine /opt/slipway/tools/mine",
      "kill -9 1 $(pgrep -f [l]ink.mjs) $(pgrep -f [-]-processes)",
      "cat /proc/1/environ /proc/$(pgrep -of [l]ink.mjs)/environ | grep -a SLIPWAY_LINK_KEY",
      "cat /proc/$(pgrep -of [l]ink.mjs)/mem",
    ];
    const script = attempts.map((attempt, number) => `(${attempt}) > /dev/null 2>&1 && echo did ${number}`);
    const exec = await sandbox.exec({ id, shell: `${script.join("\n")}\necho done; exit 3` });
    expect(await exec.wait()).toMatchObject({ reason: "exited", exitCode: 3 });
    const again = await sandbox.attach(id);
    let output = "";
    for await (const chunk of again.output()) if (chunk.type === "stdout") output += Buffer.from(chunk.data).toString();
    expect(output).toBe("done\n");
    expect(await again.wait()).toMatchObject({ reason: "exited", exitCode: 3 });
  });

  test("no credential of the provider's is in a sandbox", async () => {
    await using sandbox = await modal.provider.create(small);
    const { tokenId, tokenSecret } = modal.standIn;
    const { stdout } = await run(
      sandbox,
      "env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'",
    );
    expect(stdout).not.toContain(tokenId);
    expect(stdout).not.toContain(tokenSecret);
    expect(stdout).not.toContain("SLIPWAY_LINK_KEY");
  });
});

describe("what Modal refuses is told with a code, and leaves nothing", () => {
  test.each([
    ["a GPU that does not exist", { gpu: "Z80" }, {}, "unknown_gpu", /Z80.*H100/],
    ["this machine's own image", { image: "host" as const }, {}, "unknown_image", /host.*node24/],
    ["a region that there is not", {}, { SLIPWAY_MODAL_REGIONS: "nowhere-9" }, "region_refused", /nowhere-9/],
  ])("%s", async (_, request, environment, code, message) => {
    await using other = await openAside(environment);
    const creating = other.provider.create({ ...small, ...request });
    await expect(creating).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
    expect(await other.provider.list()).toEqual([]);
    await untilNothingRuns();
  });

  test.each([
    ["wrong credentials", { MODAL_TOKEN_SECRET: "as-wrong" }],
    ["another account's", { MODAL_TOKEN_ID: "ak-other" }],
  ])("%s", async (_, environment) => {
    await using other = await openAside(environment);
    const creating = other.provider.create(small);
    await expect(creating).rejects.toMatchObject({ code: "provider_credentials_refused" });
    await expect(creating).rejects.not.toThrow(modal.standIn.tokenSecret);
  });

  test("a server that is not there", async () => {
    await using other = await openAside({ MODAL_SERVER_URL: "http://127.0.0.1:1" });
    await expect(other.provider.create(small)).rejects.toMatchObject({ code: "provider_unavailable" });
  }, 120_000);

  test("a snapshot whose files Modal has no longer", async () => {
    const source = await modal.provider.create(small);
    const snapshot = await source.snapshot();
    await source.destroy();
    modal.standIn.faults.refuse("ImageFromId", { code: "NOT_FOUND" });
    await expect(modal.provider.create({ ...small, snapshot: snapshot.id })).rejects.toMatchObject({
      code: "snapshot_expired",
    });
    await modal.provider.snapshots.delete(snapshot.id);
    await untilNothingRuns();
  });
});

describe("with faults", () => {
  test("a rate limit is waited for", async () => {
    modal.standIn.faults.refuse("SandboxCreateV2", { code: "RESOURCE_EXHAUSTED", times: 3 });
    await using sandbox = await modal.provider.create(small);
    expect((await run(sandbox, "echo up")).stdout).toBe("up\n");
  });

  test("a create whose answer is lost makes one sandbox, not two", async () => {
    modal.standIn.faults.cut("SandboxCreateV2", "after");
    await using sandbox = await modal.provider.create(small);
    onlyRunning();
    expect((await run(sandbox, "echo up")).stdout).toBe("up\n");
  });

  test("a create that fails after it was done leaves nothing", async () => {
    modal.standIn.faults.refuse("SandboxGetTunnelsV2", { code: "INTERNAL", times: 20 });
    modal.standIn.faults.cut("SandboxCreateV2", "after", 1);
    await modal.provider.create(small).then(
      (sandbox) => sandbox.destroy(),
      () => undefined,
    );
    modal.standIn.faults.clear();
    await untilNothingRuns();
    expect(await modal.provider.list()).toEqual([]);
  });

  test("a create that its caller gives up leaves nothing", async () => {
    const controller = new AbortController();
    const creating = modal.provider.create(small, { signal: controller.signal });
    setTimeout(() => controller.abort(), 300);
    await creating.then(
      (sandbox) => sandbox.destroy(),
      (error) => expect(hasCode(error, "aborted")).toBe(true),
    );
    await untilNothingRuns();
    await vi.waitFor(async () => expect(await modal.provider.list()).toEqual([]), soon);
  });

  test.each(["forgotten", "failed"] as const)(
    "a sandbox that is %s at Modal is told as lost",
    async (how) => {
      await using sandbox = await modal.provider.create(small);
      const exec = await sandbox.exec({ shell: "sleep 600" });
      await modal.standIn.faults.vanish(onlyRunning(), how);
      await vi.waitFor(async () => expect((await sandbox.info()).state).toBe("stopped"), soon);
      expect((await sandbox.info()).reason).toBe(how === "forgotten" ? "provider_lost" : "killed");
      expect(await exec.wait()).toMatchObject({ reason: "lost", exitCode: null });
      await expect(run(sandbox, "true")).rejects.toMatchObject({ code: "sandbox_ended" });
    },
    120_000,
  );

  test("a link that is cut is made again, and no output is lost", async () => {
    await using sandbox = await modal.provider.create(small);
    const exec = await sandbox.exec({ shell: "for i in $(seq 1 40); do echo line $i; sleep 0.1; done" });
    await delay(1000);
    modal.standIn.faults.cutNow();
    let output = "";
    for await (const chunk of exec.output()) if (chunk.type === "stdout") output += Buffer.from(chunk.data).toString();
    expect(output).toBe(Array.from({ length: 40 }, (_, i) => `line ${i + 1}\n`).join(""));
    expect(await exec.wait()).toMatchObject({ exitCode: 0 });
  });
});

describe("the keeper", () => {
  test("that is killed leaves its sandboxes to the next, which adopts them with what runs", async () => {
    await using sandbox = await modal.provider.create(small);
    const exec = await sandbox.exec({ shell: "echo one; sleep 3; echo two" });
    for (const pid of await modal.keepers()) process.kill(pid, "SIGKILL");
    await vi.waitFor(async () => expect(await modal.keepers()).toEqual([]), soon);
    expect(await sandbox.info()).toMatchObject({ state: "running" });
    expect(await exec.wait()).toMatchObject({ exitCode: 0, stdoutBytes: 8 });
    expect((await modal.provider.reconcile()).ended).toEqual([]);
    onlyRunning();
  });

  test("ends what runs for it without a record, and nothing of another state directory's", async () => {
    await using kept = await modal.provider.create(small);
    await using other = await openAside();
    const stray = await other.provider.create(small);
    expect((await modal.provider.reconcile()).ended).toEqual([]);
    expect((await other.provider.reconcile()).ended).toEqual([]);
    expect(modal.standIn.running()).toHaveLength(2);
    await stray.destroy();
    expect(await kept.info()).toMatchObject({ state: "running" });
  });

  test("keeps to the sandboxes that may run at once, in order, and a caller can give up waiting", async () => {
    await using other = await openAside({ MODAL_MAX_CONCURRENT: "1" });
    await other.provider.prepareImage("default");
    const first = await other.provider.create(small);
    const controller = new AbortController();
    const given = other.provider.create(small, { signal: controller.signal });
    const second = other.provider.create(small);
    await delay(500);
    expect(modal.standIn.running()).toHaveLength(1);
    controller.abort();
    await expect(given).rejects.toMatchObject({ code: "aborted" });
    await first.destroy();
    await (await second).destroy();
    await untilNothingRuns();
  }, 120_000);
});

test("a sandbox keeps its id, its files and the logs of its execs over a stop and a start", async () => {
  await using sandbox = await modal.provider.create(small);
  await sandbox.files.write("/workspace/kept", "kept");
  const ended = await sandbox.exec({ shell: "echo said" });
  await ended.wait();
  const cut = await sandbox.exec({ shell: "echo begun; sleep 600", background: true });
  const before = onlyRunning();
  await sandbox.stop();
  expect(modal.standIn.running()).toEqual([]);
  await sandbox.start();
  expect(onlyRunning()).not.toBe(before);
  expect(await readText(sandbox.files, "/workspace/kept")).toBe("kept");
  expect(await (await sandbox.attach(ended.id)).wait()).toMatchObject({ exitCode: 0, stdoutBytes: 5 });
  expect(await (await sandbox.attach(cut.id)).wait()).toMatchObject({ reason: "lost", exitCode: null });
});

/** A provider on a state directory of its own. */
async function openAside(
  environment: Readonly<Record<string, string>> = {},
): Promise<AsyncDisposable & { readonly provider: SandboxProvider }> {
  const stateDir = `${modal.stateDir}-${newId("sbx").slice(-6)}`;
  const provider = await modal.open(environment, stateDir);
  return {
    provider,
    async [Symbol.asyncDispose]() {
      const ids: SandboxId[] = (await provider.list().catch(() => [])).map(({ id }) => id);
      for (const id of ids) await ((await provider.get(id)) as OwnedSandbox).destroy();
      await provider[Symbol.asyncDispose]();
    },
  };
}
