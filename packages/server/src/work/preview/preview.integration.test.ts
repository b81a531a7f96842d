import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { newId } from "@slipway/contract";
import type { WorkingBuild } from "@slipway/engine";
import { openUsedPorts } from "@slipway/sandbox/local/preview";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { openWorld, type WorldWith } from "../../testing/world.ts";
import { createWorkspaces } from "../workspaces/workspaces.ts";
import { createPreviews, type PreviewParts, type Previews } from "./preview.ts";

// npm takes seconds to start, and more beside other tests.

let place: WorldWith<"registry" | "sandboxes" | "repository">;
beforeAll(async () => {
  place = await openWorld({ registry: {}, sandboxes: "local", repository: "empty" });
});
afterAll(() => place[Symbol.asyncDispose]());

/** Answers with a file as it was when it started, and says to what upgrades that it is there. */
const server = `
const { createServer } = require("node:http");
const text = require("node:fs").readFileSync("text.txt", "utf8");
createServer((request, response) => {
  if (request.url === "/login") response.setHeader("Set-Cookie", "session=1; Domain=localhost; HttpOnly");
  response.end(request.url === "/cookies" ? String(request.headers.cookie) : text);
})
  .on("upgrade", (request, socket) => {
    socket.write("HTTP/1.1 101 Switching Protocols\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n\\r\\n");
    socket.pipe(socket);
  })
  .listen(Number(process.env.PORT), "127.0.0.1");
`;
const app = (text: string) => ({
  "package.json": JSON.stringify({ name: "app", private: true, scripts: { dev: "node server.js" } }),
  "server.js": server,
  "text.txt": text,
});

interface Told {
  readonly addresses: string[];
  readonly troubles: string[];
}

function openPreviews(options: Partial<PreviewParts> = {}): { previews: Previews; told: Told } {
  const told: Told = { addresses: [], troubles: [] };
  const previews = createPreviews({
    ...place,
    workspaces: createWorkspaces(place),
    directory: join(place.directory, "builds"),
    usedPorts: openUsedPorts(join(place.directory, "ports")),
    insteadOf: async (_, commit) => `There is nothing to show of ${commit}`,
    isUnderway: async () => true,
    onReady: (_, address) => told.addresses.push(address),
    onTrouble: (_, reason) => told.troubles.push(reason),
    ...options,
  });
  return { previews, told };
}

const newBuild = (): WorkingBuild => ({ ...place.build, id: newId("bld") });
const keptOf = async ({ id }: WorkingBuild) =>
  JSON.parse(await readFile(join(place.directory, "builds", id, "preview.json"), "utf8"));
const addressOf = async (build: WorkingBuild) => {
  const { port, token } = await keptOf(build);
  return `http://127.0.0.1:${port}/?slipway_token=${token}`;
};
const sandboxesOf = async ({ id }: WorkingBuild) =>
  (await place.provider.list({ labels: { build: id } })).map((one) => one.id);

async function look(address: string): Promise<{ status: number; text: string }> {
  const response = await fetch(address, { headers: { connection: "close" } });
  return { status: response.status, text: await response.text() };
}

async function lookUntil(address: string, status: number): Promise<string> {
  for (;;) {
    const seen = await look(address);
    if (seen.status === status) return seen.text;
    await sleep(100);
  }
}

test("main goes on in its sandbox's next life while its build works, and not after that", async () => {
  const [working, over] = [newBuild(), newBuild()];
  const { previews, told } = openPreviews({
    // Due at once, as far as a preview is ready to do it again.
    life: { lifetimeMs: 600_000, handoverMs: 600_000 },
    isUnderway: async (id) => id === working.id,
  });
  await using _ = previews;
  const commit = await place.commit(app("one"));
  for (const build of [over, working]) await previews.follow(build, commit);
  const infoOf = async (build: WorkingBuild) => (await place.provider.list({ labels: { build: build.id } }))[0];
  const before = { working: await infoOf(working), over: await infoOf(over) };
  await vi.waitFor(
    async () => {
      const info = await infoOf(working);
      expect(info).toMatchObject({ id: before.working?.id, state: "running" });
      expect(info?.stateChangedAt).toBeGreaterThan(before.working?.stateChangedAt ?? 0);
    },
    { timeout: 100_000, interval: 500 },
  );
  expect(await lookUntil(await addressOf(working), 200)).toBe("one");
  expect((await infoOf(working))?.expiresAt).toBeGreaterThan(before.working?.expiresAt ?? 0);
  expect((await infoOf(over))?.stateChangedAt).toBe(before.over?.stateChangedAt);
  expect(told.troubles).toEqual([]);
  for (const build of [over, working]) await previews.end(build.id);
}, 120_000);

test("main is shown at one address as it moves on, over restarts of its dev server, its sandbox and this process", async () => {
  const build = newBuild();
  let nowMs = 0;
  const { previews, told } = openPreviews({ clock: { now: () => nowMs } });
  expect(await previews.isNothing(build.id)).toBe(false);
  const library = await place.commit({ "README.md": "# App", "package.json": `{"scripts":{"test":"node --test"}}` });
  await previews.follow(build, library);
  const address = await addressOf(build);
  // Whoever looks again later is told the same.
  for (const _ of [1, 2]) {
    const first = await fetch(address);
    expect(first.status).toBe(404);
    expect(first.headers.get("retry-after")).toBe("15");
    expect(await first.text()).toContain(`There is nothing to show of ${library}`);
    nowMs += 3_600_000;
  }
  expect(await previews.isNothing(build.id)).toBe(true);
  expect(told).toEqual({ addresses: [], troubles: [] });
  expect(await sandboxesOf(build)).toEqual([]);

  await previews.follow(build, await place.commit(app("one")));
  expect(await previews.isNothing(build.id)).toBe(false);
  expect(told).toEqual({ addresses: [address], troubles: [] });
  expect(await look(address)).toEqual({ status: 200, text: "one" });
  const [sandbox] = await sandboxesOf(build);

  // All at once: the newest is what is shown at the end.
  const [two, three] = [await place.commit({ "text.txt": "two" }), await place.commit({ "text.txt": "three" })];
  await Promise.all([previews.follow(build, two), previews.follow(build, three), previews.follow(build, three)]);
  expect(await look(address)).toEqual({ status: 200, text: "three" });
  expect(await sandboxesOf(build)).toEqual([sandbox]);

  await previews[Symbol.asyncDispose]();
  await expect(fetch(address)).rejects.toThrow();
  const { previews: others, told: later } = openPreviews();
  await using _ = others;
  await others.reopen();
  expect(await look(address)).toEqual({ status: 200, text: "three" });
  expect(await sandboxesOf(build)).toEqual([sandbox]);

  await (await place.provider.get(sandbox as NonNullable<typeof sandbox>)).destroy();
  expect(await look(address)).toMatchObject({ status: 503, text: expect.stringContaining("being prepared") });
  expect(await lookUntil(address, 200)).toBe("three");
  expect(later.troubles).toEqual([]);
  expect(await sandboxesOf(build)).not.toContain(sandbox);

  await others.end(build.id);
  expect(await sandboxesOf(build)).toEqual([]);
  await expect(keptOf(build)).rejects.toMatchObject({ code: "ENOENT" });
  await expect(fetch(address)).rejects.toThrow();
});

test("a WebSocket passes both ways; who has no token or another name reaches nothing, nor do others' cookies", async () => {
  const build = newBuild();
  const { previews, told } = openPreviews();
  await using _ = previews;
  await previews.follow(build, await place.commit(app("one")));
  const address = await addressOf(build);
  expect(told.addresses).toEqual([address]);
  const { port, searchParams, origin } = new URL(address);
  const upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
  /** The head of the answer, or all of what comes when more is sent. */
  const say = async (path: string, head: string, last?: string) => {
    const socket = connect(Number(port), "127.0.0.1");
    socket.write(`GET ${path} HTTP/1.1\r\n${head}\r\n`);
    const [first] = await once(socket, "data");
    if (last === undefined) return socket.destroy() && String(first);
    const echo = once(socket, "data");
    socket.end(last);
    const [answer] = await echo;
    await once(socket, "close");
    return String(answer);
  };
  const secret = `/?slipway_token=${searchParams.get("slipway_token")}`;
  const own = `Host: 127.0.0.1:${port}\r\n`;
  expect(await say(secret, `${own}${upgrade}`, "the last word")).toBe("the last word");
  for (const kind of ["", upgrade]) {
    expect(await say("/", `${own}${kind}`)).toMatch(/^HTTP\/1.1 401 /);
    expect(await say("/?slipway_token=guessed", `${own}${kind}`)).toMatch(/^HTTP\/1.1 401 /);
    expect(await say(secret, `Host: rebound.example:${port}\r\n${kind}`)).toMatch(/^HTTP\/1.1 421 /);
  }
  expect(await say(secret, `${own}${upgrade}Origin: http://evil.example\r\n`)).toMatch(/^HTTP\/1.1 403 /);

  const login = await fetch(`${origin}/login${secret.slice(1)}`);
  const cookie = login.headers.getSetCookie()[0] ?? "";
  expect(cookie).toMatch(/_session=1; HttpOnly$/);
  const headers = { cookie: `session=theirs; ${cookie.split(";")[0]}; other=1` };
  expect(await (await fetch(`${origin}/cookies${secret.slice(1)}`, { headers })).text()).toBe("session=1");
  await previews.end(build.id);
});

test("a dev server that does not come up is told, and the next commit is shown", async () => {
  const build = newBuild();
  const failing = openPreviews();
  const broken = { ...app("one"), "server.js": "throw new Error('<no way>\\x1b[2J')" };
  await failing.previews.follow(build, await place.commit(broken));
  expect(failing.told.troubles).toEqual([expect.stringContaining("<no way>")]);
  const address = await addressOf(build);
  const page = await look(address);
  expect(page.status).toBe(503);
  expect(page.text).toContain("&lt;no way>");
  expect(page.text).not.toContain("\x1b");
  await failing.previews[Symbol.asyncDispose]();

  const impatient = openPreviews({ readyMs: 500 });
  await impatient.previews.follow(build, await place.commit({ "server.js": "setInterval(() => {}, 1000)" }));
  expect(impatient.told.troubles).toEqual([expect.stringContaining("did not answer on port 5173")]);
  await impatient.previews[Symbol.asyncDispose]();

  const { previews, told } = openPreviews();
  await using _ = previews;
  await previews.follow(build, await place.commit({ "server.js": server }));
  expect(await look(address)).toEqual({ status: 200, text: "one" });
  expect(told).toEqual({ addresses: [address], troubles: [] });
  const [sandbox] = await sandboxesOf(build);
  const execs = await (await place.provider.get(sandbox as NonNullable<typeof sandbox>)).execs();
  expect(execs.filter(({ exit }) => exit === null)).toHaveLength(1);
  await previews.end(build.id);
});

test("one that is closed has no port and no sandbox, whatever is merged and over a restart, until it is opened again", async () => {
  const build = newBuild();
  const { previews } = openPreviews();
  await previews.follow(build, await place.commit(app("one")));
  const address = await addressOf(build);
  expect(await previews.addressOf(build.id)).toBe(address);
  const two = await place.commit({ "text.txt": "two" });
  // What is on its way is not shown either.
  await Promise.all([previews.follow(build, two), previews.close(build), previews.follow(build, two)]);
  const expectClosed = async (closed: Previews) => {
    expect(await closed.addressOf(build.id)).toBeNull();
    expect(await sandboxesOf(build)).toEqual([]);
    await expect(fetch(address)).rejects.toThrow();
  };
  await expectClosed(previews);
  await previews[Symbol.asyncDispose]();

  const { previews: others, told } = openPreviews();
  await using _ = others;
  await others.reopen();
  await others.follow(build, two);
  await expectClosed(others);
  const reopened = await others.open(build, two);
  expect(new URL(reopened).origin).toBe(new URL(address).origin);
  expect(await lookUntil(reopened, 200)).toBe("two");
  // What let in before does so no more.
  expect((await look(address)).status).toBe(401);
  // It is there to be seen a moment before that is told.
  await vi.waitFor(() => expect(told).toEqual({ addresses: [reopened], troubles: [] }));
  await others.end(build.id);
  expect(await others.addressOf(build.id)).toBeUndefined();
});

test("one of which there is nothing yet can be closed, too", async () => {
  const build = newBuild();
  const { previews } = openPreviews();
  await using _ = previews;
  await previews.close(build);
  await previews.follow(build, await place.commit(app("one")));
  expect(await previews.addressOf(build.id)).toBeNull();
  expect(await sandboxesOf(build)).toEqual([]);
});

test("what is wanted last is shown, however long it takes to see what there is; and nothing of it once it is closed", async () => {
  const build = newBuild();
  const library = { "package.json": "{}" };
  const [one, two] = [await place.commit({ ...library, "a.txt": "1" }), await place.commit({ "a.txt": "2" })];
  const repository = await place.repositories.of();
  const second = Promise.withResolvers<void>();
  const read: typeof repository.read = async (commit, ...rest) => {
    if (commit === one) await second.promise;
    const files = await repository.read(commit, ...rest);
    second.resolve();
    return files;
  };
  const { previews, told } = openPreviews({ repositories: { of: async () => ({ ...repository, read }) } });
  await using _ = previews;
  await Promise.all([previews.follow(build, one), previews.follow(build, two)]);
  expect(await keptOf(build)).toMatchObject({ wanted: two });
  const late = previews.follow(build, one);
  await Promise.all([previews.close(build), late]);
  expect(await keptOf(build)).toMatchObject({ closed: true });
  expect(told).toEqual({ addresses: [], troubles: [] });
});

test("an address that somebody else has taken is another one, and is told", async () => {
  const build = newBuild();
  const { previews } = openPreviews();
  await previews.follow(build, await place.commit(app("one")));
  const old = await addressOf(build);
  await previews[Symbol.asyncDispose]();
  const other = createServer().listen(Number(new URL(old).port), "127.0.0.1");
  await once(other, "listening");
  const { previews: others, told } = openPreviews();
  await using _ = others;
  await others.reopen();
  const address = await addressOf(build);
  expect((other.address() as AddressInfo).port).not.toBe(Number(new URL(address).port));
  const { origin, searchParams } = new URL(address);
  expect(told).toEqual({ addresses: [address], troubles: [expect.stringContaining(origin)] });
  expect(told.troubles[0]).not.toContain(searchParams.get("slipway_token"));
  expect(await look(address)).toEqual({ status: 200, text: "one" });
  other.close();
  await others.end(build.id);
});

test("what can not be installed is told, and main stays as it was shown", async () => {
  const build = newBuild();
  const { previews, told } = openPreviews();
  await using _ = previews;
  const good = await place.commit(app("one"));
  await previews.follow(build, good);
  const address = await addressOf(build);
  const missing = { ...JSON.parse(app("")["package.json"]), dependencies: { "not-there": "1.0.0" } };
  const manifest = { "package.json": JSON.stringify(missing) };
  await previews.follow(build, await place.commit({ ...manifest, "text.txt": "two" }));
  expect(told.troubles).toEqual([expect.stringContaining("not-there")]);
  expect(await look(address)).toEqual({ status: 200, text: "one" });
  expect(await sandboxesOf(build)).toHaveLength(1);

  await place.registry.publish("not-there", "1.0.0", {});
  await previews.follow(build, await place.commit({ ...app("three"), ...manifest }));
  expect(await look(address)).toEqual({ status: 200, text: "three" });
  expect(await sandboxesOf(build)).toHaveLength(1);
  await previews.end(build.id);
});
