import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { toolDirectories } from "@slipway/agent-host";
import { SlipwayError } from "@slipway/contract";
import type { RepositoryReader } from "@slipway/engine";
import { planner } from "@slipway/gateway/scripted";
import type { SandboxProvider } from "@slipway/sandbox";
import { openProvider } from "@slipway/sandbox/open";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { openWorld } from "../../testing/world.ts";
import { checkerToolDirectories } from "../gates/checker.ts";
import { openRepository, type RepositoryLimits, type RepositoryOptions } from "./repository.ts";

// npm and Chromium take seconds to start, and more beside other tests.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

let scratch: string;
let provider: SandboxProvider;
let builds = 0;
beforeAll(async () => {
  scratch = await mkdtemp("/var/tmp/slipway-look-");
  // As root, sandboxes run as another user, who must be able to pass through.
  await chmod(scratch, 0o711);
  const tools = { ...(await toolDirectories("builtin", scratch)), ...checkerToolDirectories() };
  provider = await openProvider({ stateDir: join(scratch, "state"), environment: process.env, tools });
});
afterAll(async () => {
  await provider[Symbol.asyncDispose]();
  await rm(scratch, { recursive: true, force: true, maxRetries: 10 });
});
afterEach(async () => expect(await provider.list()).toEqual([]));

type Files = Readonly<Record<string, string>>;

async function reader(files: Files, { limits, through = provider }: Options = {}) {
  const directory = join(scratch, `app-${++builds}`);
  await mkdir(directory);
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(directory, path)), { recursive: true });
    await writeFile(join(directory, path), content);
  }
  const labels = { build: `build-${builds}` };
  const source = async () => ({ directory });
  return openRepository({ provider: through, source, environment: process.env, labels, ...(limits && { limits }) });
}

interface Options {
  readonly limits?: Partial<RepositoryLimits>;
  readonly through?: RepositoryOptions["provider"];
}

async function seen(files: Files, options: Options = {}): ReturnType<RepositoryReader["look"]> {
  await using repository = await reader(files, options);
  return await repository.look({});
}

/** What the server answers is the body of a function of `url` and `response`. */
function serving(answer: string): Files {
  return {
    "package.json": JSON.stringify({ name: "shelf", type: "module", scripts: { dev: "node server.js" } }),
    "server.js": `import { createServer } from "node:http";
const html = (response, page) => response.setHeader("content-type", "text/html").end("<!doctype html>" + page);
createServer((request, response) => {
  response.on("error", () => {});
  const { url } = request;
  ${answer}
}).listen(Number(process.env.PORT), "127.0.0.1");
`,
  };
}

const shelf = serving(`
  if (request.method === "POST") process.exit(1);
  if (url === "/api/books") return response.setHeader("content-type", "application/json").end("[]");
  if (url === "/about") return html(response, "<h1>About the shelf</h1><a href='/'>Back</a>");
  html(response, "<h1>My books</h1><nav><a href='/about#top'>About</a></nav><form method='post' action='/api/books'>"
    + "<label>Title <input name='title'></label><button>Put on the shelf</button></form><p id='count'></p>"
    + "<script>fetch('/api/books').then((answer) => answer.json()).then(({ length }) => { count.textContent = length + ' books'; })</script>");
`);

test("a model that drafts a feature reads the app's pages, controls, texts and routes", async () => {
  const repository = await reader(shelf);
  const running: unknown[] = [];
  await using site = await openWorld({
    planning: { request: "Lend books to friends", mode: "feature", openRepository: () => repository },
    model: async (request) => {
      for (const { id } of await provider.list()) {
        const execs = await (await provider.get(id)).execs();
        running.push(...execs.filter(({ exit }) => exit === null));
      }
      return await planner(request);
    },
  });
  expect(await site.drive()).toMatchObject({ status: "paused", reason: "user" });
  expect(running).toEqual([]);
  const [draft, , plan] = site.asked.map(({ prompt }) => prompt);
  for (const prompt of [draft, plan]) {
    expect(prompt).toMatch(/<repository-pages (\w+)>\n\/:\n[\s\S]*\n\/about:\n[\s\S]*<\/repository-pages \1>/);
    expect(prompt).toContain('- heading "My books" [level=1]');
    expect(prompt).toContain('- button "Put on the shelf"');
    expect(prompt).toMatch(/- textbox "Title"|- text: Title/);
    expect(prompt).toContain("0 books");
    expect(prompt).toContain('- heading "About the shelf" [level=1]');
    expect(prompt).toMatch(/<repository-routes (\w+)>\n[\s\S]*server\.js:\d+: if \(url === "\/api\/books"\)/);
  }
  expect(site.asked[0]?.request.system).toContain("repository-pages");
  const [record] = await site.store.builds.records(site.build, "intents");
  expect(record?.intent).toMatchObject({
    start: { repository: { pages: [{ path: "/" }, { path: "/about" }], unseen: null } },
  });
});

test("an app that does not start is drafted for with what can be read of it, and why it has no pages", async () => {
  const broken = { ...shelf, "server.js": `${shelf["server.js"]}\nthrow new Error("the shelf is broken");` };
  const repository = await reader(broken);
  await using site = await openWorld({
    model: planner,
    planning: { request: "Repair it", mode: "fix", openRepository: () => repository },
  });
  expect(await site.drive()).toMatchObject({ status: "paused", reason: "user" });
  const { prompt } = site.asked[0] ?? {};
  expect(prompt).toMatch(
    /<repository-pages \w+>\nThere are no pages: the app was not seen, because [\s\S]*the shelf is broken/,
  );
  expect(prompt).toMatch(/<repository-routes \w+>\n[\s\S]*"\/api\/books"/);
});

test.each<[string, Files, RegExp]>([
  ["is none", { "notes.txt": "" }, /no dev server/],
  [
    "cannot be installed",
    {
      "package.json": JSON.stringify({ name: "a", version: "1.0.0", dependencies: { "slipway-no-package": "1.0.0" } }),
      "package-lock.json": "{}",
    },
    /cannot be installed: npm ci ended with exit code [1-9]/,
  ],
  ["never answers", serving(""), /did not answer|took longer/],
  ["answers what is no page", serving("response.destroy();"), /did not answer|took longer|cannot be opened/],
  [
    "answers garbage",
    {
      ...serving(""),
      "server.js":
        'import { createServer } from "node:net";\ncreateServer((socket) => socket.on("error", () => {}).end("\\0garbage")).listen(process.env.PORT);',
    },
    /cannot be opened/,
  ],
  ["has a first page that hangs", serving('html(response, "<h1>Shop</h1><script>for (;;);</script>");'), /because/],
])("an app that %s has no pages, and a note", async (_, files, why) => {
  const { pages, unseen } = await seen(files, { limits: { lookMs: 45_000 } });
  expect(pages).toEqual([]);
  expect(unseen).toMatch(/^There are no pages/);
  expect(unseen).toMatch(why);
});

test("an app's first page that leads elsewhere is told with where it leads; links to it are no other page", async () => {
  const { pages, unseen } = await seen(
    serving(`
  if (url === "/books") return html(response, "<h1>Books</h1><a href='/'>Home</a><a href='/again'>Again</a><a href='/tabs'>Tabs</a>");
  if (url === "/tabs") return html(response, "<h1>Tabs</h1><script>history.replaceState(null, '', '/tabs?tab=1')</script>");
  response.writeHead(302, { location: "/books" }).end();
`),
  );
  expect(pages).toMatchObject([
    { path: "/", leadsTo: "/books", shows: expect.stringContaining('heading "Books"') },
    { path: "/tabs", leadsTo: null, shows: expect.stringContaining('heading "Tabs"') },
  ]);
  expect(unseen).toBeNull();
});

test("a hostile app leads the browser nowhere else, and is shown in part", async () => {
  let visits = 0;
  const elsewhere = createServer((_, response) => {
    visits++;
    response.end();
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => elsewhere.once("listening", resolve));
  const { port } = elsewhere.address() as AddressInfo;
  const { pages, unseen } = await seen(
    serving(`
  const chunk = "<p>" + "endless ".repeat(100) + "</p>";
  const endless = () => { while (response.write(chunk)); response.once("drain", endless); };
  if (url === "/endless") return response.writeHead(200, { "content-type": "text/html" }) && endless();
  if (url === "/hangs") return html(response, "<h1>Hangs</h1><script>for (;;);</script>");
  if (url === "/asks") return html(response, "<h1>Asks</h1><script>alert(1); open('/opened'); print();</script>");
  if (url === "/leaves") return response.writeHead(302, { location: "http://127.0.0.1:${port}/left" }).end();
  if (url === "/file") return response.writeHead(200, { "content-disposition": "attachment" }).end("file");
  if (url.startsWith("/item/")) return html(response, "<h1>Item</h1><p>" + "x".repeat(1e6) + "</p>");
  html(response, "<h1>Shop</h1><a href='http://127.0.0.1:${port}/only-there'>Other</a><a href='javascript:location=\`/scripted\`'>Script</a>"
    + "<a href='//localhost:${port}/only-there'>Other</a><a href='/" + "long".repeat(1000) + "'>Long</a>"
    + ["endless", "hangs", "asks", "leaves", "file", "last"].map((name) => "<a href='/" + name + "'>" + name + "</a>").join("")
    + Array.from({ length: 5000 }, (_, index) => "<a href='/item/" + index + "'>" + index + "</a>").join(""));
`),
  );
  elsewhere.close();
  expect(visits).toBe(0);
  const paths = pages.map(({ path }) => path);
  expect(paths[0]).toBe("/");
  expect(paths).toEqual(expect.arrayContaining(["/asks", "/last", "/item/0"]));
  expect(paths.length).toBeLessThanOrEqual(12);
  expect(new Set(paths).size).toBe(paths.length);
  for (const { path, leadsTo, shows } of pages) {
    expect(`${path} ${leadsTo}`).not.toMatch(/long|scripted|opened|left|only-there/);
    expect(shows.length).toBeLessThanOrEqual(3000);
  }
  expect(unseen).toMatch(/could not be read: .*\/(hangs|leaves|file)/);
  expect(unseen).toContain("Links lead to more pages than these.");
  expect(unseen).not.toContain("only-there");
});

test("a browser that breaks is no failure of the draft, and one that a killed server leaves is found by its labels", async () => {
  let labels: unknown;
  const create: SandboxProvider["create"] = async (request, options) => {
    if (request?.tools?.includes("checker")) labels = request.labels;
    if (labels !== undefined) throw new SlipwayError("provider_unavailable", "no room for a browser");
    return await provider.create(request, options);
  };
  const { pages, unseen } = await seen(shelf, { through: { ...provider, create } });
  expect(pages).toEqual([]);
  expect(unseen).toContain("no room for a browser");
  expect(labels).toEqual({ build: `build-${builds}`, purpose: "planning" });
});

test("who gives up is let go, and leaves no sandbox", async () => {
  const repository = await reader(serving(""));
  const controller = new AbortController();
  const given = repository.look({ signal: controller.signal });
  given.catch(() => {});
  await vi.waitFor(async () => expect(await provider.list()).toHaveLength(1), { timeout: 60_000 });
  controller.abort();
  await expect(given).rejects.toThrow();
  await repository[Symbol.asyncDispose]();
});
