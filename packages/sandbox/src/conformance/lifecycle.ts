import { setTimeout as sleep } from "node:timers/promises";
import { newId, type SandboxId } from "@slipway/contract";
import { describe, expect, test } from "vitest";
import type { Sandbox } from "../provider.ts";
import { readBytes, readText } from "../run.ts";
import { type Conformance, collect, eventually, expectCode, runProgram, uniqueName } from "./context.ts";
import { eventsOf } from "./events.ts";
import { expectStill } from "./exec-end.ts";
import { command } from "./programs.ts";

export function describeLifecycle(c: Conformance): void {
  describe("create", () => {
    test("answers a sandbox that runs and tells what it was made with", async () => {
      const labels = { test: uniqueName() };
      await using sandbox = await c.create({ labels, ports: [8080], lifetimeMs: 600_000, workdir: "/workspace/deep" });
      const info = await sandbox.info();
      expect(info).toMatchObject({ id: sandbox.id, provider: c.provider.name, state: "running", reason: "started" });
      expect(info).toMatchObject({ labels, ports: [8080], workdir: "/workspace/deep", user: "agent", snapshot: null });
      expect(info.limits).toMatchObject({ cpu: 1, memoryMb: 512 });
      expect(info.expiresAt).toBe(info.createdAt + 600_000);
      expect((await runProgram(sandbox, "workingDirectory")).stdout).toBe("/workspace/deep\n");
    });

    test("of several at once makes them apart", async () => {
      const sandboxes = await Promise.all([c.create(), c.create(), c.create()]);
      expect(new Set(sandboxes.map(({ id }) => id)).size).toBe(3);
      await sandboxes[0]?.files.write("/workspace/own", "first");
      await expectCode(sandboxes[1]?.files.stat("/workspace/own") ?? Promise.resolve(), "file_not_found");
      await Promise.all(sandboxes.map((sandbox) => sandbox.destroy()));
    });

    test("leaving the scope destroys the sandbox", async () => {
      let id: SandboxId;
      {
        await using sandbox = await c.create();
        id = sandbox.id;
      }
      await expectCode(c.provider.get(id), "sandbox_not_found");
    });

    test("leaving the scope of one that is destroyed already is fine", async () => {
      await using sandbox = await c.create();
      await sandbox.destroy();
    });
  });

  describe("get and list", () => {
    test("find a sandbox by id, by labels and by state", async () => {
      const labels = { test: uniqueName(), kind: "listed" };
      await using sandbox = await c.create({ labels });
      expect((await (await c.provider.get(sandbox.id)).info()).id).toBe(sandbox.id);
      const ids = async (filter: Parameters<typeof c.provider.list>[0]) =>
        (await c.provider.list(filter)).map(({ id }) => id);
      expect(await ids(undefined)).toContain(sandbox.id);
      expect(await ids({ labels })).toEqual([sandbox.id]);
      expect(await ids({ labels: { test: labels.test } })).toEqual([sandbox.id]);
      expect(await ids({ labels: { ...labels, kind: "other" } })).toEqual([]);
      expect(await ids({ labels, states: ["running"] })).toEqual([sandbox.id]);
      expect(await ids({ labels, states: ["sleeping", "stopped"] })).toEqual([]);
    });

    test("find nothing by an id that is no sandbox's", async () => {
      for (const id of [newId("sbx"), newId("exc"), newId("snp"), "../../etc", ""]) {
        await expectCode(c.provider.get(id as SandboxId), "sandbox_not_found");
      }
    });
  });

  if (c.capabilities.stopStart) describeStop(c);
  else {
    test("stop and start are refused", async () => {
      await expectCode(c.shared.stop(), "capability_missing");
      await expectCode(c.shared.start(), "capability_missing");
    });
  }
  if (c.capabilities.sleep) describeSleep(c);
  else {
    test("sleep and wake are refused", async () => {
      await expectCode(c.shared.sleep(), "capability_missing");
      await expectCode(c.shared.wake(), "capability_missing");
    });
  }
  describeDestroy(c);
}

function describeStop(c: Conformance): void {
  describe("stop and start", () => {
    test("keep the files, end the processes, and the state says why", async () => {
      await using sandbox = await c.create();
      await sandbox.files.write("/workspace/kept", "kept", { mode: 0o755 });
      const exec = await sandbox.exec(command("beat", "/workspace/beat"));
      await eventually(async () => void (await sandbox.files.stat("/workspace/beat")));
      await sandbox.stop();
      expect(await sandbox.info()).toMatchObject({ state: "stopped", reason: "requested" });
      await sandbox.start();
      expect(await sandbox.info()).toMatchObject({ state: "running", reason: "started" });
      expect(await readText(sandbox.files, "/workspace/kept")).toBe("kept");
      expect(await sandbox.files.stat("/workspace/kept")).toMatchObject({ mode: 0o755 });
      await expectStill(sandbox, "/workspace/beat");
      expect((await (await sandbox.attach(exec.id)).wait()).exitCode).toBeNull();
    });

    test("a stopped sandbox is told as such to whoever uses it, and still tells its past", async () => {
      await using sandbox = await c.create();
      const exec = await sandbox.exec(command("speak", "before", ""));
      await exec.wait();
      await sandbox.stop();
      await expectCode(sandbox.exec(command("exit", "0")), "sandbox_not_running");
      await expectCode(sandbox.files.stat("/workspace"), "sandbox_not_running");
      await expectCode(sandbox.connect(3000), "sandbox_not_running");
      const tellsPast = async () => {
        expect(await (await sandbox.attach(exec.id)).wait()).toMatchObject({ exitCode: 0 });
        expect(await sandbox.execs()).toHaveLength(1);
      };
      if (c.capabilities.logsWhileStopped) await tellsPast();
      else
        for (const look of [() => sandbox.attach(exec.id), () => sandbox.execs()])
          await expectCode(look, "sandbox_not_running");
      expect(await c.provider.list({ states: ["stopped"] })).toContainEqual(
        expect.objectContaining({ id: sandbox.id }),
      );
      await sandbox.start();
      await tellsPast();
    });

    test("asked for twice are fine", async () => {
      await using sandbox = await c.create();
      await sandbox.start();
      await sandbox.stop();
      await sandbox.stop();
      expect(await sandbox.info()).toMatchObject({ state: "stopped" });
      await sandbox.start();
      await sandbox.start();
      expect(await sandbox.info()).toMatchObject({ state: "running" });
    });
  });
}

function describeSleep(c: Conformance): void {
  describe("sleep and wake", () => {
    if (c.capabilities.sleepKeepsProcesses) describeKeptProcesses(c);
    else {
      test("keep the files and end the processes", async () => {
        await using sandbox = await c.create();
        await sandbox.files.write("/workspace/kept", "kept");
        const exec = await sandbox.exec({ ...command("beat", "/workspace/beat"), background: true });
        await eventually(async () => void (await sandbox.files.stat("/workspace/beat")));
        await sandbox.sleep();
        expect(await sandbox.info()).toMatchObject({ state: "sleeping", reason: "requested" });
        await sandbox.wake();
        expect(await sandbox.info()).toMatchObject({ state: "running", reason: "woken" });
        expect(await readText(sandbox.files, "/workspace/kept")).toBe("kept");
        await expectStill(sandbox, "/workspace/beat");
        expect(await (await sandbox.attach(exec.id)).wait()).toMatchObject({ reason: "lost", exitCode: null });
      });
    }

    test("many uses at once wake once, and all are served", async () => {
      await using sandbox = await c.create();
      await sandbox.sleep();
      const results = await Promise.all(
        Array.from({ length: 8 }, (_, i) => runProgram(sandbox, "speak", [`${i}`, ""])),
      );
      expect(results.map(({ stdout }) => stdout).join("")).toBe("01234567");
      const woken = (await eventsOf(c, sandbox.id)).filter(
        (event) => event.type === "sandbox.state_changed" && event.reason === "woken",
      );
      expect(woken).toHaveLength(1);
    });

    test("a use wakes: an exec, a file", async () => {
      await using sandbox = await c.create();
      await sandbox.files.write("/workspace/kept", "kept");
      await sandbox.sleep();
      expect((await runProgram(sandbox, "speak", ["awake", ""])).stdout).toBe("awake");
      expect(await sandbox.info()).toMatchObject({ state: "running", reason: "woken" });
      await sandbox.sleep();
      expect(await readText(sandbox.files, "/workspace/kept")).toBe("kept");
      expect(await sandbox.info()).toMatchObject({ state: "running" });
    });

    test("a look does not wake", async () => {
      await using sandbox = await c.create();
      await sandbox.sleep();
      await sandbox.info();
      await c.provider.list();
      if (c.capabilities.logsWhileStopped) await sandbox.execs();
      await (await c.provider.get(sandbox.id)).info();
      expect(await sandbox.info()).toMatchObject({ state: "sleeping" });
    });

    test("asked for twice are fine", async () => {
      await using sandbox = await c.create();
      await sandbox.wake();
      await sandbox.sleep();
      await sandbox.sleep();
      expect(await sandbox.info()).toMatchObject({ state: "sleeping" });
    });

    if (c.capabilities.stopStart) {
      test("a sleeping sandbox can be stopped, not started; a stopped one neither sleeps nor wakes", async () => {
        await using sandbox = await c.create();
        await sandbox.sleep();
        await expectCode(sandbox.start(), "sandbox_wrong_state");
        await sandbox.stop();
        expect(await sandbox.info()).toMatchObject({ state: "stopped" });
        await expectCode(sandbox.sleep(), "sandbox_not_running");
        await expectCode(sandbox.wake(), "sandbox_not_running");
      });
    }
  });
}

function describeKeptProcesses(c: Conformance): void {
  test("keep the processes and the files; nothing runs in between", async () => {
    await using sandbox = await c.create();
    const startedAt = Date.now();
    const exec = await sandbox.exec({ ...command("beat", "/workspace/beat"), background: true });
    await eventually(async () => void (await sandbox.files.stat("/workspace/beat")));
    await sandbox.sleep();
    const sleptAt = Date.now();
    expect(await sandbox.info()).toMatchObject({ state: "sleeping", reason: "requested" });
    await sleep(1500);
    const wokenAt = Date.now();
    await sandbox.wake();
    expect(await sandbox.info()).toMatchObject({ state: "running", reason: "woken" });
    const atWake = (await readText(sandbox.files, "/workspace/beat")).length;
    const awakeMs = sleptAt - startedAt + Date.now() - wokenAt;
    // Thirty while it sleeps would be far more.
    expect(atWake).toBeLessThanOrEqual(2 * (awakeMs / 50 + 5));
    await eventually(async () => {
      expect((await readText(sandbox.files, "/workspace/beat")).length).toBeGreaterThan(atWake);
    });
    await exec.kill();
  });

  test("lose no byte of a file and nothing that a process remembers", async () => {
    await using sandbox = await c.create();
    const content = Buffer.alloc(1024 * 1024, "all of it ");
    await sandbox.files.write("/workspace/large", content);
    const exec = await sandbox.exec({ ...command("echoInput"), stdin: "open", background: true });
    await exec.write("before ");
    await sandbox.sleep();
    await sandbox.wake();
    expect(Buffer.from(await readBytes(sandbox.files, "/workspace/large")).equals(content)).toBe(true);
    await exec.write("after");
    await exec.end();
    expect((await collect(exec.output())).stdout.toString()).toBe("before after");
  });
}

function describeDestroy(c: Conformance): void {
  describe("destroy", () => {
    const states: [string, (sandbox: Sandbox) => Promise<void>][] = [["running", async () => undefined]];
    if (c.capabilities.sleep) states.push(["sleeping", (sandbox) => sandbox.sleep()]);
    if (c.capabilities.stopStart) states.push(["stopped", (sandbox) => sandbox.stop()]);

    for (const [state, bring] of states) {
      test(`of a ${state} sandbox ends all and says so`, async () => {
        const sandbox = await c.create();
        await sandbox.exec(command("quiet", "60"));
        await bring(sandbox);
        const receipt = await sandbox.destroy();
        expect(receipt).toMatchObject({ sandbox: sandbox.id, processesGone: true, filesGone: true });
        if (state === "running") expect(receipt.processesEnded).toBeGreaterThan(0);
        expect(Math.abs(receipt.destroyedAt - Date.now())).toBeLessThan(60_000);
        expect((await c.provider.list()).map(({ id }) => id)).not.toContain(sandbox.id);
      });
    }

    test("leaves nothing to use", async () => {
      const sandbox = await c.create();
      const exec = await sandbox.exec(command("exit", "0"));
      await exec.wait();
      await sandbox.destroy();
      const calls = [
        sandbox.info(),
        sandbox.exec(command("exit", "0")),
        sandbox.attach(exec.id),
        sandbox.execs(),
        sandbox.files.stat("/workspace"),
        sandbox.connect(3000),
        sandbox.snapshot(),
        sandbox.fork(),
        sandbox.keepAlive(1000),
        sandbox.destroy(),
        c.provider.get(sandbox.id),
      ];
      for (const call of calls) call.catch(() => undefined);
      for (const call of calls) await expectCode(call, "sandbox_not_found");
    });

    test("from two sides at once succeeds once or twice, never half", async () => {
      const sandbox = await c.create();
      const other = await c.provider.get(sandbox.id);
      const results = await Promise.allSettled([sandbox.destroy(), other.destroy()]);
      expect(results.map(({ status }) => status)).toContain("fulfilled");
      for (const result of results) {
        if (result.status === "rejected") await expectCode(Promise.reject(result.reason), "sandbox_not_found");
      }
      await expectCode(c.provider.get(sandbox.id), "sandbox_not_found");
    });
  });
}
