import { once } from "node:events";
import { connect } from "node:http2";
import { text } from "node:stream/consumers";
import { type BuildId, newId, SlipwayError } from "@slipway/contract";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { type KeptRestate, startRestate } from "./keep-restate.ts";
import { type DurableLoopOptions, openDurableLoop } from "./loop.ts";
import { createRestateApi } from "./restate-api.ts";
import { anHour, loseData, over, scriptedTick, startFixture, type TickCall, temporaryDirectory } from "./testing.ts";

const directory = temporaryDirectory();
let restate: KeptRestate;
let build: BuildId;
let names = 0;

beforeAll(async () => {
  restate = await startRestate({ directory: directory.path });
});
afterAll(async () => {
  await restate?.[Symbol.asyncDispose]();
  directory[Symbol.dispose]();
});
beforeEach(() => {
  build = newId("bld");
});

const open = (tick: DurableLoopOptions["tick"], options: Partial<DurableLoopOptions> = {}) =>
  openDurableLoop({ restate, name: `test-${++names}`, tick, ...options });
interface AdminAnswer {
  readonly rows: readonly { readonly status: string }[];
  readonly deployments: readonly { readonly uri: string; readonly services: readonly { readonly name: string }[] }[];
}
const admin = async (path: string, method = "GET", body?: unknown) => {
  const headers = { "content-type": "application/json", accept: "application/json" };
  const json = body === undefined ? {} : { body: JSON.stringify(body) };
  const response = await fetch(new URL(path, restate.adminUrl), { method, headers, ...json });
  return (await response.json()) as AdminAnswer;
};
const servedAt = async (name: string) => {
  const { deployments } = await admin("/deployments");
  const served = deployments.filter(({ services }) => services.some((each) => each.name === `buildLoop-${name}`));
  return served.map(({ uri }) => uri);
};
/** Of what drives the build. */
const statuses = async (): Promise<string[]> => {
  const query = `select status from sys_invocation_status where target_service_key = '${build}' and status <> 'completed'`;
  return (await admin("/query", "POST", { query })).rows.map(({ status }) => status);
};

describe("a loop", () => {
  test("takes a turn at once, then when its bell rings", async () => {
    const { tick, called, calls } = scriptedTick((_, count) => (count < 3 ? anHour : over));
    await using loop = await open(tick, { name: "the-server" });
    await loop.drive(build, 7);
    const first = await called(1);
    expect(first).toEqual({ build, holder: "the-server", generation: 7, bell: expect.stringMatching(/^\w/) });
    await loop.ring(first.bell);
    const second = await called(2);
    expect(second).toEqual({ ...first, bell: expect.not.stringContaining(first.bell) });
    await loop.ring(second.bell);
    await called(3);
    await vi.waitFor(async () => expect(await statuses()).toEqual([]));
    expect(calls).toHaveLength(3);
  });

  test("hears a bell that rings during its turn", async () => {
    const { tick, called } = scriptedTick(async ({ bell }, count) => {
      if (count === 1) await loop.ring(bell);
      return count === 1 ? anHour : over;
    });
    await using loop = await open(tick);
    await loop.drive(build, 1);
    await called(2);
  });

  test("takes a turn when its time has come, without a bell", async () => {
    const { tick, called } = scriptedTick((_, count) => (count < 3 ? { over: false, waitMs: 10 } : over));
    await using loop = await open(tick);
    await loop.drive(build, 1);
    expect((await called(3)).generation).toBe(1);
  });

  test("hands over to the next generation, and again", async () => {
    const { tick, called, calls } = scriptedTick((_, count) => (count < 250 ? { over: false, waitMs: 0 } : over));
    await using loop = await open(tick);
    await loop.drive(build, 1);
    await called(250);
    await vi.waitFor(async () => expect(await statuses()).toEqual([]));
    const turns = Map.groupBy(calls, ({ generation }) => generation);
    expect([...turns].map(([generation, { length }]) => [generation, length])).toEqual([
      [1, 100],
      [2, 100],
      [3, 50],
    ]);
    expect(new Set(calls.map(({ bell }) => bell)).size).toBe(250);
  });

  test("is not woken twice by a bell that rings twice, nor by old, unknown and malformed bells", async () => {
    const { tick, called, calls } = scriptedTick((_, count) => (count < 3 ? anHour : over));
    await using loop = await open(tick);
    await loop.drive(build, 1);
    const { bell } = await called(1);
    await Promise.all([loop.ring(bell), loop.ring(bell)]);
    const next = await called(2);
    for (const old of [
      bell,
      `${bell.slice(0, -6)}AAAAAA`,
      "sign_1nonsense",
      "../../deployments",
      "x".repeat(4_000),
      " ",
    ]) {
      await loop.ring(old);
    }
    await loop.ring(next.bell);
    await called(3);
    await vi.waitFor(async () => expect(await statuses()).toEqual([]));
    for (const late of [bell, next.bell]) await loop.ring(late);
    expect(calls).toHaveLength(3);
  });

  test("is left by Restate while it waits, and comes back by its bell", async () => {
    const { tick, called } = scriptedTick((_, count) => (count < 3 ? anHour : over));
    await using loop = await open(tick, { name: "sleeper" });
    await admin("/services/buildLoop-sleeper", "PATCH", { inactivity_timeout: "50ms" });
    await loop.drive(build, 1);
    await loop.ring((await called(1)).bell);
    const { bell } = await called(2);
    await vi.waitFor(async () => expect(await statuses()).toEqual(["suspended"]));
    await loop.ring(bell);
    await called(3);
  });

  test("takes a turn that failed again, soon and in the same generation", async () => {
    const { tick, called } = scriptedTick((_, count) => {
      if (count < 4) throw new SlipwayError("database_busy", "later");
      return over;
    });
    await using loop = await open(tick);
    await loop.drive(build, 1);
    const [first, , , fourth] = [await called(1), await called(2), await called(3), await called(4)];
    expect(fourth).toEqual(first);
  });

  test.each(["lease_lost", "build_not_found"] as const)("ends without a word by %s", async (code) => {
    const warnings: string[] = [];
    const { tick, called, calls } = scriptedTick(() => {
      throw new SlipwayError(code, "not yours");
    });
    await using loop = await open(tick, { warn: (message) => void warnings.push(message) });
    await loop.drive(build, 1);
    await called(1);
    await vi.waitFor(async () => expect(await statuses()).toEqual([]));
    expect({ calls: calls.length, warnings }).toEqual({ calls: 1, warnings: [] });
  });
});

describe("driving a build anew", () => {
  test("ends the former loop, whose bell then rings for nobody", async () => {
    const { tick, called, calls } = scriptedTick(() => anHour);
    await using loop = await open(tick);
    await loop.drive(build, 1);
    const former = await called(1);
    await loop.drive(build, 2);
    expect(await called(2)).toMatchObject({ generation: 2 });
    await loop.ring(former.bell);
    await loop.ring((await called(2)).bell);
    expect((await called(3)).generation).toBe(2);
    expect(calls).toHaveLength(3);
    await vi.waitFor(async () => expect(await statuses()).toHaveLength(1));
  });

  test("ends a loop that hands over all the time", async () => {
    const { tick, called } = scriptedTick(({ generation }) =>
      generation < 1_000 ? { over: false, waitMs: 0 } : anHour,
    );
    await using loop = await open(tick, { maxTurns: 1 });
    await loop.drive(build, 1);
    await called(20);
    await loop.drive(build, 1_000);
    await vi.waitFor(async () => expect(await statuses()).toHaveLength(1));
  });

  test("does not wait for a turn that hangs", async () => {
    const gate = Promise.withResolvers<void>();
    const { tick, called } = scriptedTick(async (_, count) => {
      if (count === 1) await gate.promise;
      return anHour;
    });
    await using loop = await open(tick);
    await loop.drive(build, 1);
    await called(1);
    await loop.drive(build, 2);
    expect(await called(2)).toMatchObject({ generation: 2 });
    gate.resolve();
  });

  test("takes it over from a server that was killed", async () => {
    const { tick, called, calls } = scriptedTick(() => anHour);
    await using loop = await open(tick);
    using other = startFixture("loop", "the-other", restate.ingressUrl, restate.adminUrl, restate.identityKey ?? "");
    expect(await other.line()).toBe("open");
    const call = { service: "buildLoop-the-other", key: build, handler: "drive", idempotencyKey: build };
    await createRestateApi(restate).send({ ...call, input: { generation: 1 } });
    expect(await other.line<TickCall>()).toMatchObject({ build, holder: "the-other", generation: 1 });
    other.kill();
    await loop.drive(build, 2);
    expect(await called(1)).toMatchObject({ build, generation: 2 });
    await loop.ring((await called(1)).bell);
    await called(2);
    expect(calls).toHaveLength(2);
    await vi.waitFor(async () => expect(await statuses()).toHaveLength(1));
  });

  test("goes on at a server's next start, at another address", async () => {
    const name = "comes-back";
    const former = scriptedTick(() => anHour);
    {
      await using loop = await open(former.tick, { name });
      await loop.drive(build, 1);
      await former.called(1);
    }
    const next = scriptedTick(() => anHour);
    await using loop = await open(next.tick, { name });
    await loop.drive(build, 2);
    expect(await next.called(1)).toMatchObject({ generation: 2 });
    await vi.waitFor(async () => expect(await servedAt(name)).toHaveLength(1));
  });
});

describe("when Restate is killed", () => {
  test("loops go on: a bell that rings meanwhile does no harm, and one that rings when it is back is heard", async () => {
    const restarted = Promise.withResolvers<boolean>();
    const { tick, called } = scriptedTick(() => anHour);
    await using loop = await open(tick, { onRestart: ({ dataLost }) => restarted.resolve(dataLost) });
    await loop.drive(build, 1);
    const { bell } = await called(1);
    process.kill(restate.pid, "SIGKILL");
    await loop.ring(bell);
    expect(await restarted.promise).toBe(false);
    await loop.ring(bell);
    expect(await called(2)).toMatchObject({ generation: 1 });
  });

  test("and its data deleted, builds are driven anew", async () => {
    const restarted = Promise.withResolvers<boolean>();
    const { tick, called } = scriptedTick(() => anHour);
    await using loop = await open(tick, { onRestart: ({ dataLost }) => restarted.resolve(dataLost) });
    await loop.drive(build, 1);
    const { bell } = await called(1);
    process.kill(restate.pid, "SIGKILL");
    loseData(directory.path);
    expect(await restarted.promise).toBe(true);
    await loop.ring(bell);
    await loop.drive(build, 2);
    expect(await called(2)).toMatchObject({ generation: 2 });
  });

  test("and its data deleted, a build can be driven before anybody was told, and the loss is told once", async () => {
    const losses: boolean[] = [];
    const { tick, called } = scriptedTick(() => anHour);
    await using loop = await open(tick, { onRestart: ({ dataLost }) => void (dataLost && losses.push(dataLost)) });
    process.kill(restate.pid, "SIGKILL");
    loseData(directory.path);
    await loop.drive(build, 1);
    await called(1);
    await vi.waitFor(() => expect(losses).toEqual([true]));
  });
});

describe("the handlers", () => {
  const ask = async (uri: string, headers: Record<string, string>) => {
    const session = connect(uri);
    try {
      const stream = session.request(headers);
      stream.end();
      const [answer] = await once(stream, "response");
      await text(stream);
      return answer[":status"];
    } finally {
      session.destroy();
    }
  };
  const invoke = {
    ":method": "POST",
    ":path": "/invoke/buildLoop-guarded/drive",
    "content-type": "application/vnd.restate.invocation.v5",
  };

  test("take no requests that are unsigned or that another Restate has signed", async () => {
    const warnings: string[] = [];
    const { tick, calls } = scriptedTick(() => over);
    await using _ = await open(tick, { name: "guarded", warn: (message) => void warnings.push(message) });
    const [uri = ""] = await servedAt("guarded");
    expect(await ask(uri, invoke)).toBe(401);
    expect(await ask(uri, { ":path": "/discover", accept: "application/vnd.restate.endpointmanifest.v3+json" })).toBe(
      401,
    );
    const forged = { "x-restate-signature-scheme": "v1", "x-restate-jwt-v1": "e30.e30.e30" };
    expect(await ask(uri, { ...invoke, ...forged })).toBe(401);
    using elsewhere = temporaryDirectory();
    await using other = await startRestate({ directory: elsewhere.path });
    await expect(createRestateApi(other).register(uri)).rejects.toThrow("401");
    const { tick: unused } = scriptedTick(() => over);
    const { ingressUrl, adminUrl, onRestart } = restate;
    const mistaken = { ingressUrl, adminUrl, onRestart, identityKey: other.identityKey };
    await expect(open(unused, { restate: mistaken })).rejects.toThrow("SLIPWAY_RESTATE_KEY");
    expect(calls).toEqual([]);
    expect(warnings.join()).toContain("Rejecting");
  });

  test.each([{}, { generation: 0 }, { generation: "1" }, null])("refuse to drive by %j", async (input) => {
    const { tick, calls } = scriptedTick(() => over);
    await using _ = await open(tick, { name: "careful" });
    const url = new URL(`/buildLoop-careful/${build}/drive`, restate.ingressUrl);
    const headers = { "content-type": "application/json" };
    const response = await fetch(url, { method: "POST", body: JSON.stringify(input), headers });
    expect(response.status).toBe(400);
    expect(calls).toEqual([]);
  });

  test("are not served beyond loopback without a key", async () => {
    const unsigned = { ...restate, identityKey: undefined };
    const { tick } = scriptedTick(() => over);
    await expect(open(tick, { restate: unsigned, host: "0.0.0.0" })).rejects.toMatchObject({
      code: "invalid_settings",
      message: expect.stringContaining("SLIPWAY_RESTATE_KEY"),
    });
  });
});

test.each(["", "a b", "x/y", "ä", "'", "x".repeat(65)])("a server can not be named %j", async (name) => {
  const { tick } = scriptedTick(() => over);
  await expect(open(tick, { name })).rejects.toMatchObject({ code: "invalid_settings" });
});

test("a loop that is closed lets its turn end first, and takes no other", async () => {
  const gate = Promise.withResolvers<void>();
  const { tick, called, calls } = scriptedTick(async () => {
    await gate.promise;
    return { over: false, waitMs: 0 };
  });
  const loop = await open(tick);
  await loop.drive(build, 1);
  await called(1);
  // However long Restate takes to answer, the time that a turn is given at the end does not pass.
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  let isClosed = false;
  const closing = loop[Symbol.asyncDispose]().then(() => {
    isClosed = true;
  });
  await statuses();
  expect(isClosed).toBe(false);
  gate.resolve();
  await closing;
  expect(calls).toHaveLength(1);
});
