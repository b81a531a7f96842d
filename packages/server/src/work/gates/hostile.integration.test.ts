import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { openWorld, type WorldWith } from "../../testing/world.ts";
import { createGates } from "./gates.ts";
import { app, get, type Unnamed } from "./testing.ts";

// npm and Chromium take seconds to start, and more beside other tests.
vi.setConfig({ testTimeout: 300_000 });

let site: WorldWith<"gates">;
beforeAll(async () => {
  site = await openWorld({ sandboxes: "local", repository: app, gates: {} });
});
afterAll(async () => await site[Symbol.asyncDispose]());

const scripts = (scripts: Record<string, string>) => ({ "package.json": JSON.stringify({ type: "module", scripts }) });

/** Looks for the checks in every file, environment and command line it can read. */
const hunter = `import { createServer } from "node:http";
import { lstatSync, readdirSync, readFileSync } from "node:fs";
const needle = ["needle", "77"].join("-");
const found = [];
const look = (path) => {
  try {
    if (readFileSync(path).includes(needle)) found.push(path);
  } catch {}
};
const walk = (directory) => {
  let names = [];
  try {
    names = readdirSync(directory);
  } catch {}
  for (const name of names) {
    const path = directory + "/" + name;
    const stat = lstatSync(path, { throwIfNoEntry: false });
    if (stat?.isDirectory()) walk(path);
    else if (stat?.isFile() && stat.size < 1e8) look(path);
  }
};
const hunt = () => {
  for (const top of ["/workspace", "/tmp", "/home", "/run", "/opt", "/var", "/dev/shm"]) walk(top);
  for (const pid of readdirSync("/proc").filter((name) => /^\\d+$/.test(name))) {
    for (const file of ["cmdline", "environ"]) look("/proc/" + pid + "/" + file);
  }
  return found.length === 0 ? "nothing" : found.join(" ");
};
let visits = 0;
const chunk = Buffer.alloc(65536);
const endless = (response) => {
  while (response.write(chunk));
  response.once("drain", () => endless(response));
};
const html = (response, page) => response.setHeader("content-type", "text/html").end(page);
const loop = "<h1>Loop</h1><script>for (;;);</script>";
createServer((request, response) => {
  response.on("error", () => {});
  switch (request.url) {
    case "/hunt": return response.end("found: " + hunt());
    case "/endless": return response.writeHead(200, { "content-length": 10_000_000_000 }) && endless(response);
    case "/half": return response.writeHead(200, { "content-length": 100 }).write("half");
    case "/elsewhere": return response.writeHead(302, { location: "http://example.com/" }).end();
    case "/loop": return html(response, loop);
    case "/loop-once": return html(response, visits++ === 0 ? loop : "<h1>Shop</h1>");
    default: return html(response, "<h1>Shop</h1>");
  }
}).listen(Number(process.env.PORT), "127.0.0.1");
`;

const sees = (path: string, name: string): Unnamed => ({
  type: "browser",
  viewport: "desktop",
  appearance: null,
  steps: [
    { action: "open", path },
    { action: "see", target: { role: "heading", name } },
  ],
});

test("an app finds nothing of the checks, and whatever it does to them ends in words", async () => {
  const build = await site.demand({
    hunts: {
      tasks: ["own"],
      checks: [get("/hunt", 200, { bodyContains: ["found: nothing"], bodyLacks: ["needle-77"] })],
    },
    endless: { tasks: ["own"], checks: [get("/endless", 200)] },
    half: { tasks: ["own"], checks: [get("/half", 200)] },
    elsewhere: { tasks: ["own"], checks: [get("/elsewhere", 200)] },
    loops: { tasks: ["own"], checks: [sees("/loop", "needle-77")] },
    // For all that is known, it was the browser that has hung.
    "loops-once": { tasks: ["own"], checks: [sees("/loop-once", "Shop")] },
    shows: { tasks: ["own"], checks: [sees("/", "Shop")] },
  });
  const commit = await site.candidate({ "server.js": hunter });
  const gates = createGates({ ...site.parts, checkMs: 10_000 });
  const { verdict, findings } = await gates.run(build, site.work("intent", commit), new AbortController().signal);
  expect(verdict).toBe("failed");
  expect(findings.map(({ text }) => text.split("\n\n").join(" "))).toEqual([
    expect.stringMatching(/\(endless\).*more than 1048576 bytes/),
    expect.stringMatching(/\(half\).*did not answer completely within 10 seconds/),
    expect.stringMatching(/\(elsewhere\).*redirected out of the app/),
    expect.stringMatching(/\(loops\)/),
  ]);
  expect(await site.provider.list()).toEqual([]);
});

test.each([
  ["kills all it can reach", "kill -9 -1; exit 0", ["failed", "error"]],
  ["takes all memory", "node -e 'const all = []; for (;;) all.push(Buffer.alloc(5e7, 1))'", ["failed"]],
  ["forges a success and fails", "echo '# pass 12'; echo '# fail 0'; exit 3", ["failed"]],
])("a test script that %s does not pass", async (_, script, verdicts) => {
  const commit = await site.candidate(scripts({ test: script }));
  const { verdict, findings } = await site.judge("tests", commit, { base: commit });
  expect(verdicts).toContain(verdict);
  expect(findings).toHaveLength(1);
  expect(await site.provider.list()).toEqual([]);
});

test("words of a candidate lose what a terminal would obey", async () => {
  const commit = await site.candidate(scripts({ build: "printf '\\033]0;owned\\007\\033[2Jbad\\n'; exit 1" }));
  const { findings } = await site.judge("build", commit);
  expect(findings[0]?.text).toMatch(/bad$/);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  expect(findings[0]?.text).not.toMatch(/[\u0000-\u0008\u001b]/);
});
