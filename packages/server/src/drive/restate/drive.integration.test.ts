import { once } from "node:events";
import { statSync } from "node:fs";
import { connect, createServer } from "node:http2";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { dirname } from "node:path";
import { text } from "node:stream/consumers";
import { type BuildId, newId } from "@slipway/contract";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import type { TakeTurn } from "../drive.ts";
import { anHour, over, scriptedTurns, type TurnCall } from "../testing/scripted-turns.ts";
import { describeDrive } from "../testing/suite.ts";
import { askOnce, createRestateApi } from "./api.ts";
import { openRestateDrive, type RestateDriveParts, restateDrive } from "./drive.ts";
import { newIdentity, startFixture, startRestate, type TestRestate } from "./testing.ts";

let restate: TestRestate;
let build: BuildId;
let names = 0;

beforeAll(async () => {
  restate = await startRestate();
});
afterAll(async () => await restate?.[Symbol.asyncDispose]());
beforeEach(() => {
  build = newId("bld");
});

const open = (takeTurn: TakeTurn, parts: Partial<RestateDriveParts> = {}) =>
  openRestateDrive({
    ...restate.settings,
    address: restate.address,
    name: `test-${++names}`,
    takeTurn,
    warn: () => {},
    ...parts,
  });
interface AdminAnswer {
  readonly rows: readonly { readonly status: string }[];
  readonly deployments: readonly { readonly uri: string; readonly services: readonly { readonly name: string }[] }[];
}
const admin = async (path: string, method = "GET", body?: unknown) => {
  const signal = AbortSignal.timeout(15_000);
  const answer = await askOnce({ url: restate.address.adminUrl, path, method, body }, signal);
  return answer.body as AdminAnswer;
};
const servedAt = async (name: string) => {
  const { deployments } = await admin("/deployments");
  const served = deployments.filter(({ services }) => services.some((each) => each.name === `buildLoop-${name}`));
  return served.map(({ uri }) => uri);
};
/** Of what drives the build. */
const statuses = async (of = build): Promise<string[]> => {
  const query = `select status from sys_invocation_status where target_service_key = '${of}' and status <> 'completed'`;
  return (await admin("/query", "POST", { query })).rows.map(({ status }) => status);
};

test("Restate listens on sockets that nobody else can open", () => {
  const path = new URL(restate.address.adminUrl).pathname;
  expect(statSync(path).mode & 0o077).toBe(0);
  expect(statSync(dirname(dirname(dirname(path)))).mode & 0o077).toBe(0);
});

describeDrive({
  open,
  idle: async (of) => void (await vi.waitFor(async () => expect(await statuses(of)).toEqual([]))),
});

describe("a loop", () => {
  test("hands over to the next generation, and again", async () => {
    const { takeTurn, called, calls } = scriptedTurns((_, count) => (count < 250 ? { over: false, waitMs: 0 } : over));
    await using drive = await open(takeTurn);
    await drive.drive(build, 1);
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

  test("is left by Restate while it waits, and comes back by its bell", async () => {
    const { takeTurn, called } = scriptedTurns((_, count) => (count < 3 ? anHour : over));
    await using drive = await open(takeTurn, { name: "sleeper" });
    await admin("/services/buildLoop-sleeper", "PATCH", { inactivity_timeout: "50ms" });
    await drive.drive(build, 1);
    await drive.ring((await called(1)).bell);
    const { bell } = await called(2);
    await vi.waitFor(async () => expect(await statuses()).toEqual(["suspended"]));
    await drive.ring(bell);
    await called(3);
  });

  test("that hands over all the time is ended when its build is driven anew", async () => {
    const { takeTurn, called } = scriptedTurns(({ generation }) =>
      generation < 1_000 ? { over: false, waitMs: 0 } : anHour,
    );
    await using drive = await open(takeTurn, { maxTurns: 1 });
    await drive.drive(build, 1);
    await called(20);
    await drive.drive(build, 1_000);
    await vi.waitFor(async () => expect(await statuses()).toHaveLength(1));
  });

  test("is taken over from a server that was killed", async () => {
    const { takeTurn, called, calls } = scriptedTurns(() => anHour);
    await using drive = await open(takeTurn);
    using other = startFixture({ ...restate.settings, name: "the-other" });
    expect(await other.line()).toBe("open");
    const call = { service: "buildLoop-the-other", key: build, handler: "drive", idempotencyKey: build };
    await createRestateApi(restate.address).send({ ...call, input: { generation: 1 } });
    expect(await other.line<TurnCall>()).toMatchObject({ build, holder: "the-other", generation: 1 });
    other.kill();
    await drive.drive(build, 2);
    expect(await called(1)).toMatchObject({ build, generation: 2 });
    await drive.ring((await called(1)).bell);
    await called(2);
    expect(calls).toHaveLength(2);
    await vi.waitFor(async () => expect(await statuses()).toHaveLength(1));
  });

  test("goes on at a server's next start, at another address", async () => {
    const name = "comes-back";
    const former = scriptedTurns(() => anHour);
    {
      await using drive = await open(former.takeTurn, { name });
      await drive.drive(build, 1);
      await former.called(1);
    }
    const next = scriptedTurns(() => anHour);
    await using drive = await open(next.takeTurn, { name });
    await drive.drive(build, 2);
    expect(await next.called(1)).toMatchObject({ generation: 2 });
    await vi.waitFor(async () => expect(await servedAt(name)).toHaveLength(1));
  });
});

describe("when Restate is killed", () => {
  test("a bell that rings when it is back is heard", async () => {
    const { takeTurn, called } = scriptedTurns(() => anHour);
    await using drive = await open(takeTurn);
    await drive.drive(build, 1);
    const { bell } = await called(1);
    await restate.kill();
    const ringing = drive.ring(bell);
    await restate.start();
    await ringing;
    expect(await called(2)).toMatchObject({ generation: 1 });
  });

  test("and its data are deleted, a build is driven anew, and the loss is told", async () => {
    const warnings: string[] = [];
    const { takeTurn, called } = scriptedTurns(() => anHour);
    await using drive = await open(takeTurn, { warn: (message) => void warnings.push(message) });
    await drive.drive(build, 1);
    const { bell } = await called(1);
    await restate.kill();
    restate.loseData();
    await restate.start();
    await drive.ring(bell);
    await drive.drive(build, 2);
    expect(await called(2)).toMatchObject({ generation: 2 });
    expect(warnings.join()).toContain("has lost");
  });
});

test("handlers that somebody else has registered for the service are found before a build is driven, and replaced", async () => {
  const warnings: string[] = [];
  const { takeTurn, called } = scriptedTurns(() => anHour);
  await using drive = await open(takeTurn, { name: "robbed", warn: (message) => void warnings.push(message) });
  const [own = ""] = await servedAt("robbed");
  await using thief = await serveAs(own);
  await admin("/deployments", "POST", { uri: thief.uri, force: true });
  expect(await createRestateApi(restate.address).servedAt("buildLoop-robbed")).toBe(`${thief.uri}/`);
  await drive.drive(build, 1);
  expect(await called(1)).toMatchObject({ holder: "robbed", generation: 1 });
  expect(thief.invoked).toEqual([]);
  expect(warnings.join()).toContain(thief.uri);
  expect(await createRestateApi(restate.address).servedAt("buildLoop-robbed")).toBe(own);
});

/** Answers discovery with what another endpoint says of itself to Restate, and notes what it is asked for besides. */
async function serveAs(original: string) {
  const invoked: string[] = [];
  const server = createServer(async (request, response) => {
    const path = request.url;
    if (path !== "/discover") {
      invoked.push(path);
      response.stream.close();
      return;
    }
    const session = connect(original);
    const asked = session.request({ ...request.headers, ":path": path });
    asked.end();
    const [answer] = await once(asked, "response");
    response.writeHead(answer[":status"], { "content-type": answer["content-type"] });
    response.end(await text(asked));
    session.destroy();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    uri: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    invoked,
    async [Symbol.asyncDispose]() {
      server.close();
    },
  };
}

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
    const { takeTurn, calls } = scriptedTurns(() => over);
    await using _ = await open(takeTurn, { name: "guarded", warn: (message) => void warnings.push(message) });
    const [uri = ""] = await servedAt("guarded");
    expect(await ask(uri, invoke)).toBe(401);
    expect(await ask(uri, { ":path": "/discover", accept: "application/vnd.restate.endpointmanifest.v3+json" })).toBe(
      401,
    );
    const forged = { "x-restate-signature-scheme": "v1", "x-restate-jwt-v1": "e30.e30.e30" };
    expect(await ask(uri, { ...invoke, ...forged })).toBe(401);
    const mistaken = newIdentity().identityKey;
    await expect(open(takeTurn, { identityKey: mistaken })).rejects.toThrow("SLIPWAY_RESTATE_KEY");
    expect(calls).toEqual([]);
    expect(warnings.join()).toContain("Rejecting");
  });

  test.each([{}, { generation: 0 }, { generation: "1" }, null])("refuse to drive by %j", async (body) => {
    const { takeTurn, calls } = scriptedTurns(() => over);
    await using _ = await open(takeTurn, { name: "careful" });
    const path = `/buildLoop-careful/${build}/drive`;
    const request = { url: restate.address.ingressUrl, path, method: "POST", body, expected: [400] };
    expect((await askOnce(request, AbortSignal.timeout(15_000))).status).toBe(400);
    expect(calls).toEqual([]);
  });
});

describe("a Restate by its address", () => {
  const unanswered = async (url: string) => {
    const settings = { ...restate.settings, url, adminUrl: url };
    return await restateDrive(settings).catch((error: unknown) => error);
  };

  test("where nothing listens is told", async () => {
    await using server = createTcpServer();
    await once(server.listen(0, "127.0.0.1"), "listening");
    const { port } = server.address() as AddressInfo;
    await server[Symbol.asyncDispose]();
    for (const url of [`http://127.0.0.1:${port}`, "unix:/nowhere/ingress.sock"]) {
      expect(await unanswered(url)).toMatchObject({
        code: "loop_unavailable",
        message: expect.stringMatching(/ECONNREFUSED|ENOENT/),
      });
    }
  });
});
