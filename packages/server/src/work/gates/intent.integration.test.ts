import { newId, type PerformanceMetric, SlipwayError } from "@slipway/contract";
import { devServerPort, run, startDevServer } from "@slipway/sandbox";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { openWorld, type WorldWith } from "../../testing/world.ts";
import { openChecker } from "./checker.ts";
import { createGates } from "./gates.ts";
import { app, get, type Unnamed } from "./testing.ts";

// npm and Chromium take seconds to start, and more beside other tests.
vi.setConfig({ testTimeout: 300_000 });

let site: WorldWith<"gates">;
beforeAll(async () => {
  site = await openWorld({ sandboxes: "local", repository: app, gates: {} });
});
afterAll(async () => await site[Symbol.asyncDispose]());

const addsItem: Unnamed = {
  type: "calls",
  calls: [
    {
      route: "put",
      with: [],
      send: [{ field: "name", value: "rye-7" }],
      expect: { answer: "accepted", has: [{ field: "[]", value: "rye-7" }], lacks: [] },
      keep: [],
    },
    {
      route: "all",
      with: [],
      send: [],
      expect: { answer: "accepted", has: [{ field: "[]", value: "rye-7" }], lacks: [{ field: "[]", value: "wheat" }] },
      keep: [],
    },
  ],
};

const addsInBrowser: Unnamed = {
  type: "visit",
  viewport: "phone",
  steps: [
    { action: "open", page: "home" },
    { action: "see", what: { control: "title", with: [] } },
    { action: "fill", control: "entry", with: [], value: "oats-3" },
    { action: "click", control: "add", with: [] },
    { action: "see", what: { value: "oats-3" } },
    { action: "reload" },
    { action: "see", what: { value: "oats-3" } },
    { action: "see-nothing-of", what: { value: "barley-1" } },
  ],
  appearance: "It is green.",
};

/** As it would have been before there were surfaces. */
const addsInEarlierWords: Unnamed = {
  type: "browser",
  viewport: "phone",
  steps: [
    { action: "open", path: "/" },
    { action: "fill", target: { role: "textbox", name: "Item" }, value: "spelt-9" },
    { action: "click", target: { role: "button", name: "Add" } },
    { action: "see", target: { role: "listitem", name: "spelt-9" } },
  ],
  appearance: null,
};

function measured(metric: PerformanceMetric, atMost: number): Unnamed {
  return { type: "measure", page: "home", sees: { control: "title", with: [] }, metric, atMost };
}

const paintsSoon = measured("largestPaintMs", 30_000);

const figures = (["firstByteMs", "interactionMs", "layoutShift"] as const).map((metric) =>
  measured(metric, metric === "layoutShift" ? 0.5 : 30_000),
);
const isSmall = measured("transferKilobytes", 0.1);

test("an app that does what the criteria say goes through, by http and in a browser", async () => {
  const build = await site.demand({
    "adds-items": { tasks: ["own"], checks: [addsItem, addsInBrowser, addsInEarlierWords, get("/", 200)] },
    "is-quick": { tasks: ["own"], checks: [paintsSoon, ...figures] },
  });
  const commit = await site.candidate({ "README.md": "# Shop\n" });
  expect(await site.judge("intent", commit, {}, build)).toMatchObject({ verdict: "passed", findings: [] });
  expect(await site.provider.list()).toEqual([]);
});

test("what does not hold is told with its statement and what was seen, and not with what was looked for", async () => {
  const build = await site.demand({
    "adds-items": { tasks: ["own"], checks: [addsItem] },
    "shows-items": { tasks: ["own"], checks: [addsInBrowser] },
    "is-small": { tasks: ["own"], checks: [isSmall] },
  });
  const forgetful = app["server.js"]?.replace("items.push(JSON.parse(body).name)", "JSON.parse(body)");
  const commit = await site.candidate({ "server.js": forgetful ?? "" });
  const { verdict, findings, parts } = await site.judge("intent", commit, {}, build);
  expect(verdict).toBe("failed");
  const failed = { verdict: "failed", score: null };
  expect(parts).toEqual([
    { ...failed, name: "adds-items", failedAt: { check: 0, step: 0 } },
    { ...failed, name: "shows-items", failedAt: { check: 0, step: 4 } },
    { ...failed, name: "is-small", failedAt: { check: 0, step: 0 } },
  ]);
  expect(findings.map(({ text }) => text)).toEqual([
    expect.stringMatching(
      /^This does not hold yet \(adds-items\): What adds-items says is true\.[\s\S]*POST \/api\/items: .*has no \[\]/,
    ),
    expect.stringMatching(
      /\(shows-items\)[\s\S]*The button "Add", which the surface has on \/, was clicked\.\n5\. What was entered before is not on the page/,
    ),
    expect.stringMatching(/\(is-small\)[\s\S]*opened once[\s\S]*kilobytes; the limit is 0\.1 kilobytes/),
  ]);
  expect(JSON.stringify(findings)).not.toMatch(/rye-7|wheat|barley-1/);
});

test("an agent that shows the text of a finding without its effect is refused again, whatever number it guesses", async () => {
  const count = (action: "see" | "see-nothing-of", value: string) => ({
    action,
    what: { message: "count", with: [{ variable: "count", value }] },
  });
  const add = (value: string) => [
    { action: "fill" as const, control: "entry", with: [], value },
    { action: "click" as const, control: "add", with: [] },
  ];
  const counts: Unnamed = {
    type: "visit",
    viewport: "desktop",
    appearance: null,
    steps: [
      { action: "open", page: "home" },
      ...[count("see-nothing-of", "2"), ...add("rye"), count("see", "1"), ...add("oats"), count("see", "2")],
    ],
  };
  const build = await site.demand({ "counts-items": { tasks: ["own"], checks: [counts] } });
  const told: string[] = [];
  for (const shown of ["", "<p>1 item</p>", "<p>1 item</p><p>2 items</p>"]) {
    const page = app["page.js"]?.replace("<ul></ul>", `<ul></ul>${shown}`) ?? "";
    const { verdict, findings } = await site.judge("intent", await site.candidate({ "page.js": page }), {}, build);
    expect(verdict).toBe("failed");
    told.push(findings[0]?.text ?? "");
  }
  expect(told[0]).toContain('The surface\'s message "{count} items", as it has to read now, is not on the page.');
  expect(told[1]).toContain('The surface\'s message "{count} items", as it has to read now, is not on the page.');
  expect(told[2]).toContain("and must not be any more");
});

test("a criterion is not due before all tasks that serve it are in the commit", async () => {
  const build = await site.demand({
    mine: { tasks: ["own"], checks: [get("/", 200)] },
    ours: { tasks: ["own", "other"], checks: [get("/", 418)] },
    theirs: { tasks: ["other"], checks: [get("/", 418)] },
  });
  const other = await site.candidate({ "other.txt": "other\n" });
  const alone = await site.candidate({ "own.txt": "own\n" });
  const together = await site.candidate({ "own.txt": "own\n" }, other);
  expect(await site.judge("intent", together, {}, build)).toMatchObject({ verdict: "passed" });
  await site.apply(build, {
    records: {
      merges: [
        {
          build: build.id,
          candidate: newId("cnd"),
          task: "other",
          position: 1,
          commit: other,
          parent: site.main,
          mergedAt: 1,
        },
      ],
    },
  });
  expect(await site.judge("intent", alone, {}, build)).toMatchObject({ verdict: "passed" });
  const { findings } = await site.judge("main-test", together, {}, build);
  expect(findings.map(({ text }) => /\((\w+)\)/.exec(text)?.[1])).toEqual(["ours", "theirs"]);
});

test("a task whose work main has already is taken for done when all that it serves is seen there", async () => {
  const onMain = { base: site.main };
  const build = await site.demand({
    mine: { tasks: ["own"], checks: [get("/", 200)] },
    ours: { tasks: ["second", "other"], checks: [get("/", 418)] },
    theirs: { tasks: ["other"], checks: [get("/", 418)] },
  });
  expect(await site.judge("intent", site.main, onMain, build)).toMatchObject({ verdict: "passed", findings: [] });
  const { findings } = await site.judge("intent", site.main, { ...onMain, task: "second" }, build);
  expect(findings).toMatchObject([{ text: expect.stringMatching(/^This does not hold yet \(ours\)/) }]);
});

test("of a task that serves nothing, others must have changed the files that it was expected to", async () => {
  const build = await site.demand({ theirs: { tasks: ["other"], checks: [get("/", 418)] } });
  const [plan] = await site.store.builds.records(build.id, "plans");
  const task = {
    title: "x",
    description: "x",
    component: "backend",
    features: ["shop"],
    dependencies: [],
    criteria: [],
    estimate: { minutes: 1, usd: 1 },
  };
  const tasks = [
    { ...task, id: "vague", expectedFiles: [] },
    { ...task, id: "docs", expectedFiles: ["docs.md"] },
  ];
  const commit = await site.candidate({ "docs.md": "# Docs\n" });
  const merge = { task: "first", position: 1, commit, parent: site.main, mergedAt: 1 };
  await site.apply(build, {
    records: {
      plans: [{ build: build.id, round: 2, intentHash: plan?.intentHash ?? "", tasks }],
      merges: [{ ...merge, build: build.id, candidate: newId("cnd") }],
    },
  });
  const judge = (main: string, of: string) => site.judge("intent", main, { base: main, task: of }, build);
  expect(await judge(commit, "docs")).toMatchObject({ verdict: "passed", findings: [] });
  expect(await judge(site.main, "docs")).toMatchObject({
    verdict: "failed",
    findings: [{ text: expect.stringContaining("changed docs.md") }],
  });
  expect(await judge(commit, "vague")).toMatchObject({
    verdict: "failed",
    findings: [{ text: expect.stringContaining("No check shows") }],
  });
});

test("without a criterion that is due nothing is started", async () => {
  const build = await site.demand({ later: { tasks: ["own", "other"], checks: [get("/", 418)] } });
  expect(await site.judge("intent", site.main, {}, build)).toMatchObject({ verdict: "passed", findings: [] });
});

test("an app that never answers is one finding, with its last words, be it that it listens", async () => {
  const build = await site.demand({
    one: { tasks: ["own"], checks: [get("/", 200)] },
    two: { tasks: ["own"], checks: [get("/", 200)] },
  });
  const gates = createGates({ ...site.parts, readyMs: 30_000 });
  const saying = (server: string) => ({ "server.js": `console.log("I wait for nobody");\n${server}` });
  const mute = `import { createServer } from "node:http";
createServer(() => {}).listen(Number(process.env.PORT), "127.0.0.1");
`;
  const commits = [await site.candidate(saying("setInterval(() => {}, 1000);\n")), await site.candidate(saying(mute))];
  const { signal } = new AbortController();
  const ends = await Promise.all(commits.map((commit) => gates.run(build, site.work("intent", commit), signal)));
  const text = expect.stringMatching(/did not answer on port 5173[\s\S]*I wait for nobody/);
  for (const end of ends) expect(end).toMatchObject({ verdict: "failed", findings: [{ text }] });
  const dead = await site.candidate({ "server.js": "throw new Error('no such shop');\n" });
  const ended = await site.judge("intent", dead, {}, build);
  expect(ended.findings).toMatchObject([{ text: expect.stringContaining("no such shop") }]);
});

test("all that the intent asks for is told with evidence, of workflows as well", async () => {
  const build = await site.demand({ broken: { tasks: ["own"], checks: [get("/", 418)] } });
  const evidence = await site.gates.satisfaction(build, site.main, new AbortController().signal);
  expect(evidence.filter(({ satisfied }) => !satisfied).map(({ id }) => id)).toEqual(["broken"]);
  expect(evidence.find(({ id }) => id === "first-visit")).toEqual({
    id: "first-visit",
    satisfied: true,
    text: "GET / was answered with 200, as expected.",
  });
});

test("where no sandbox can be made nothing is satisfied, and the evidence says why", async () => {
  const build = await site.demand({});
  const refuse = async () => {
    throw new SlipwayError("invalid_settings", "there is no room for sandboxes");
  };
  const gates = createGates({ ...site.parts, workspaces: { open: refuse } });
  const evidence = await gates.satisfaction(build, site.main, new AbortController().signal);
  expect(evidence.length).toBeGreaterThan(0);
  for (const { satisfied, text } of evidence) {
    expect({ satisfied, text }).toEqual({ satisfied: false, text: expect.stringContaining("no room for sandboxes") });
  }
});

test("what runs as the browser reaches the app and nothing of the program that judges", async () => {
  const { provider } = site;
  await using running = await site.parts.workspaces.open(site.build, site.main, { purpose: "gate" });
  const { signal } = new AbortController();
  await startDevServer(running, { signal });
  const labels = { purpose: "checker-alone" };
  const connect = () => running.connect(devServerPort, { signal });
  await using checker = await openChecker({ provider, labels, connect, signal });
  const see = { action: "see", target: { role: "heading", names: ["Shop"] } } as const;
  const steps = [{ action: "open", path: "/" } as const, see];
  const job = { type: "visit", viewport: "desktop", steps } as const;
  expect(await checker.check(job)).toEqual({ type: "passed" });
  const made = await Promise.all((await provider.list({ labels })).map(({ id }) => provider.get(id)));
  const commands = await Promise.all(
    made.map(async (sandbox) => (await run(sandbox, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")).stdout),
  );
  const judges = commands.map((text) => text.includes("/opt/checker/main.ts"));
  const browses = commands.map((text) => text.includes("--type="));
  expect([made.length, judges.filter(Boolean).length]).toEqual([2, 1]);
  expect(browses).toEqual(judges.map((is) => !is));

  const browser = made[browses.indexOf(true)];
  if (browser === undefined) throw new Error("there is no browser");
  const kill = "kill -9 -1; ls /opt/playwright-core";
  expect((await run(browser, kill)).exitCode).not.toBe(0);
  // With the whole of its sandbox it can end itself, and the program says that it broke, or goes on with another one.
  const after = await checker.check(job).catch((error: Error) => ({ type: error.message }));
  expect(after.type).not.toBe("passed");
});
