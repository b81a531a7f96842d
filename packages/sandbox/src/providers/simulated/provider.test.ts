import { newId, SlipwayError } from "@slipway/contract";
import { describe, expect, test } from "vitest";
import { readText, run } from "../../run.ts";
import { createManualClock, createSimulatedProvider, type SimulatedProgram, type SimulatedSettings } from "./index.ts";

const hold: SimulatedProgram = async ({ clock }) => {
  for (;;) await clock.sleep(1000);
};

function setUp(settings: SimulatedSettings = {}) {
  const clock = createManualClock();
  return { clock, provider: createSimulatedProvider({ clock, programs: { true: async () => 0, hold }, ...settings }) };
}

describe("ordered faults", () => {
  test("a failure comes to the next call only", async () => {
    const { provider } = setUp();
    provider.faults.failNext("create", "provider_unavailable");
    provider.faults.failNext("create", new SlipwayError("internal", "second"));
    await expect(provider.create({})).rejects.toMatchObject({ code: "provider_unavailable" });
    await expect(provider.create({})).rejects.toMatchObject({ code: "internal", message: "second" });
    await provider.create({});
    expect(await provider.list()).toHaveLength(1);
  });

  test("a create whose answer is lost is found by its key", async () => {
    const { provider } = setUp();
    provider.faults.failNext("create", "provider_unavailable", { when: "after" });
    await expect(provider.create({ idempotencyKey: "k" })).rejects.toMatchObject({ code: "provider_unavailable" });
    const [made] = await provider.list();
    expect((await provider.create({ idempotencyKey: "k" })).id).toBe(made?.id);
  });

  test("a start whose answer is lost runs once", async () => {
    let runs = 0;
    const { provider } = setUp({ programs: { count: async () => ++runs } });
    const sandbox = await provider.create({});
    const request = { argv: ["count"], id: newId("exc") };
    provider.faults.failNext("exec", "provider_unavailable", { when: "after" });
    await expect(sandbox.exec(request)).rejects.toMatchObject({ code: "provider_unavailable" });
    expect(await (await sandbox.exec(request)).wait()).toMatchObject({ exitCode: 1 });
    expect(runs).toBe(1);
  });

  test("a call that hangs answers only to its caller's giving up", async () => {
    const { provider, clock } = setUp();
    provider.faults.hangNext("list");
    const controller = new AbortController();
    let answered = false;
    const hanging = provider.list({}, { signal: controller.signal }).finally(() => {
      answered = true;
    });
    hanging.catch(() => undefined);
    await clock.advance(86_400_000);
    expect(answered).toBe(false);
    controller.abort();
    await expect(hanging).rejects.toMatchObject({ code: "aborted" });
  });

  test("calls take the time they are told to", async () => {
    const { provider, clock } = setUp({ latenciesMs: { create: 100 } });
    provider.faults.slowNext("create", 400);
    let created = 0;
    for (let i = 0; i < 2; i++) void provider.create({}).then(() => created++);
    await clock.advance(99);
    expect(created).toBe(0);
    await clock.advance(1);
    expect(created).toBe(1);
    await clock.advance(400);
    expect(created).toBe(2);
  });

  test("a lost sandbox says so, its commands are lost, and it can be destroyed", async () => {
    const { provider } = setUp();
    const sandbox = await provider.create({});
    const exec = await sandbox.exec({ argv: ["hold"] });
    provider.faults.lose(sandbox.id);
    expect(await exec.wait()).toMatchObject({ reason: "lost", exitCode: null });
    expect(await sandbox.info()).toMatchObject({ state: "error", reason: "provider_lost" });
    await expect(sandbox.exec({ argv: ["true"] })).rejects.toMatchObject({ code: "sandbox_ended" });
    expect((await provider.reconcile()).lost).toEqual([sandbox.id]);
    expect(await sandbox.destroy()).toMatchObject({ processesEnded: 0 });
  });

  test("memory that runs out ends the commands and the sandbox, with a typed reason", async () => {
    const { provider } = setUp();
    const sandbox = await provider.create({});
    const exec = await sandbox.exec({ argv: ["hold"] });
    provider.faults.outOfMemory(sandbox.id);
    expect(await exec.wait()).toMatchObject({ reason: "out_of_memory", exitCode: null, signal: "SIGKILL" });
    expect(await sandbox.info()).toMatchObject({ state: "stopped", reason: "out_of_memory" });
  });

  test("a cut breaks the streams that are open and nothing else", async () => {
    const { provider } = setUp();
    const sandbox = await provider.create({});
    const exec = await sandbox.exec({ argv: ["hold"] });
    const reading = exec.output()[Symbol.asyncIterator]().next();
    reading.catch(() => undefined);
    await Promise.resolve();
    provider.faults.cutStreams();
    await expect(reading).rejects.toMatchObject({ code: "provider_unavailable", retry: "later" });
    const again = await sandbox.attach(exec.id);
    await again.kill();
    expect(await again.wait()).toMatchObject({ reason: "killed" });
  });

  test("a coordinator that dies takes only its own calls with it", async () => {
    const { provider } = setUp();
    const other = provider.another();
    const sandbox = await other.create({});
    const waiting = (await sandbox.exec({ argv: ["hold"] })).wait();
    waiting.catch(() => undefined);
    await other[Symbol.asyncDispose]();
    await expect(waiting).rejects.toMatchObject({ code: "provider_unavailable" });
    await expect(other.list()).rejects.toMatchObject({ code: "provider_unavailable" });
    expect(await provider.list({ states: ["running"] })).toHaveLength(1);
  });
});

describe("time", () => {
  test("a sandbox of default times sleeps after 20 minutes and is stopped after a day of sleep", async () => {
    const { provider, clock } = setUp();
    const sandbox = await provider.create({});
    await clock.advance(20 * 60_000 - 1);
    expect(await sandbox.info()).toMatchObject({ state: "running" });
    await clock.advance(1);
    expect(await sandbox.info()).toMatchObject({ state: "sleeping", reason: "idle" });
    await clock.advance(86_400_000);
    expect(await sandbox.info()).toMatchObject({ state: "stopped", reason: "slept_out" });
    expect(await provider.snapshots.list()).toHaveLength(1);
  });

  test("sleep does not use up the lifetime", async () => {
    const { provider, clock } = setUp();
    const sandbox = await provider.create({ lifetimeMs: 60_000 });
    await sandbox.sleep();
    await clock.advance(600_000);
    await sandbox.wake();
    await clock.advance(59_000);
    expect(await sandbox.info()).toMatchObject({ state: "running" });
    await clock.advance(1000);
    expect(await sandbox.info()).toMatchObject({ state: "stopped", reason: "expired" });
  });

  test("a destroyed sandbox leaves no timer", async () => {
    const { provider, clock } = setUp();
    const sandbox = await provider.create({ checkpointMs: 1000 });
    await sandbox.exec({ argv: ["hold"] });
    await sandbox.destroy();
    expect(clock.pending).toBe(0);
  });
});

describe("programs", () => {
  test("reach the network as the policy says, with the secrets of the egress", async () => {
    const call: SimulatedProgram = async ({ argv, egress, stdout }) => {
      await stdout.write(JSON.stringify(egress(argv[1] ?? "", Number(argv[2]))));
      return 0;
    };
    const { provider } = setUp({ programs: { call } });
    const secrets = [{ host: "api.example.com", header: "x-key", value: "k" }];
    const sandbox = await provider.create({ network: { domains: ["*.example.com"], cidrs: ["10.1.0.0/16"], secrets } });
    const ask = async (...args: string[]) => (await run(sandbox, ["call", ...args])).stdout;
    expect(await ask("api.example.com", "443")).toBe('{"x-key":"k"}');
    expect(await ask("api.example.com", "80")).toBe("{}");
    expect(await ask("other.example.com", "443")).toBe("{}");
    expect(await ask("10.1.2.3", "80")).toBe("{}");
    for (const args of [
      ["example.com", "443"],
      ["api.example.com", "22"],
      ["10.2.0.1", "80"],
    ])
      expect(await ask(...args)).toBe("null");
  });

  test("that throw end as a program does: exit code 1, the words on stderr", async () => {
    const { provider } = setUp({ programs: { broken: () => Promise.reject(new Error("broken inside")) } });
    expect(await run(await provider.create({}), ["broken"])).toMatchObject({
      exitCode: 1,
      stderr: "Error: broken inside\n",
    });
  });

  test("that have been ended have no effect any more", async () => {
    const { promise: gate, resolve: open } = Promise.withResolvers<void>();
    const { promise: over, resolve: done } = Promise.withResolvers<unknown>();
    const stubborn: SimulatedProgram = async ({ files }) => {
      await gate;
      await files.write("late", "x").catch(done);
      return 0;
    };
    const { provider } = setUp({ programs: { stubborn } });
    const sandbox = await provider.create({});
    const exec = await sandbox.exec({ argv: ["stubborn"] });
    await exec.kill();
    open();
    expect(await over).toBeInstanceOf(Error);
    await expect(readText(sandbox.files, "late")).rejects.toMatchObject({ code: "file_not_found" });
  });

  test("are found by name, by path, or by a function of the arguments", async () => {
    const { provider } = setUp();
    const sandbox = await provider.create({});
    expect((await run(sandbox, ["/usr/bin/true"])).exitCode).toBe(0);
    const byFunction = setUp({ programs: (argv) => (argv.length === 3 ? async () => 9 : undefined) }).provider;
    const other = await byFunction.create({});
    expect((await run(other, "any text")).exitCode).toBe(9);
    await expect(other.exec({ argv: ["x"] })).rejects.toMatchObject({ code: "exec_not_started" });
  });
});

test("bytes that went in or came out are the caller's own", async () => {
  const { files } = await setUp().provider.create({});
  const sent = Buffer.from("kept");
  await files.write("f", sent);
  sent.fill(0);
  for await (const chunk of files.read("f")) chunk.fill(0);
  for await (const entry of files.download("/workspace"))
    if (entry.type === "file") (entry.content as Uint8Array).fill(0);
  expect(await readText(files, "f")).toBe("kept");
});

test("a provider that is full says so, and has room again", async () => {
  const { provider } = setUp({ maxSandboxes: 1 });
  const first = await provider.create({});
  await expect(provider.create({})).rejects.toMatchObject({ code: "provider_unavailable", retry: "later" });
  await first.destroy();
  await provider.create({});
});

test("two runs of the same simulation are the same to the last id and event", async () => {
  const play = async () => {
    const { provider, clock } = setUp();
    const sandbox = await provider.create({ idleMs: 1000 });
    await run(sandbox, ["true"]);
    await clock.advance(5000);
    await (await sandbox.fork()).destroy();
    const events = [];
    const controller = new AbortController();
    for await (const event of provider.events({ signal: controller.signal })) {
      events.push(event);
      if (event.type === "sandbox.destroyed") break;
    }
    return events;
  };
  expect(await play()).toEqual(await play());
});
