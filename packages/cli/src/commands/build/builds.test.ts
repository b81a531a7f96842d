import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BuildId, type BuildView, endAs, microUsdPerUsd, newId, SlipwayError } from "@slipway/contract";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runCli, startCli } from "../../testing/run-cli.ts";
import { buildView, createStubServer, eventOf, follow, intent, plan } from "../../testing/stub-server.ts";

const hostile = "\u001b]0;pwned\u0007a shop\u001b[2J\nwith \u202etwo lines";
const counts = buildView().tasks;
const run = (argv: readonly string[], views: readonly BuildView[] = [], parts = {}) => {
  const server = createStubServer(views, parts);
  return runCli(argv, { server, terminal: true, env: { NO_COLOR: "1" } }).then((result) => ({ ...result, server }));
};

describe("builds", () => {
  test("are a table, newest first, and hostile text is harmless in it", async () => {
    const view = buildView({ request: hostile, tasks: { ...counts, merged: 2, pending: 1 } });
    const { code, stdout } = await run(["builds"], [view]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^ID +STATUS +MERGED +SPENT +STARTED +REQUEST\n/);
    expect(stdout).toMatch(
      / running {2}2 of 3 {2}0\.0120 USD of 100\.00 USD {2}1m \d+s ago {2}a shop with two lines\n/,
    );
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
    expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202e]/);
  });

  test("none are told as such, ids alone with --quiet, all of it with --json", async () => {
    expect((await run(["builds"])).stderr).toContain("slipway build");
    const view = buildView();
    expect((await run(["builds", "-q"], [view])).stdout).toBe(`${view.id}\n`);
    expect(JSON.parse((await run(["--json", "builds"], [view])).stdout)).toMatchObject([{ id: view.id }]);
  });

  test("of a status that there is not are refused", async () => {
    const { code, stderr } = await run(["builds", "--status", "asleep"]);
    expect({ code, stderr }).toMatchObject({
      code: 125,
      stderr: expect.stringContaining('"asleep" is not one of planning'),
    });
  });
});

describe("an id", () => {
  const [first, second] = [newId("bld", 1_700_000_000_000), newId("bld", 1_800_000_000_000)].map((id) =>
    buildView({ id }),
  ) as [BuildView, BuildView];

  test("may be a beginning or an end, and is the newest build's where there is none", async () => {
    const show = async (...argv: string[]) =>
      JSON.parse((await run(["--json", "status", ...argv], [second, first])).stdout).id;
    expect(await show()).toBe(second.id);
    expect(await show(first.id)).toBe(first.id);
    expect(await show(first.id.slice(0, 10))).toBe(first.id);
    expect(await show(first.id.slice(4, 12))).toBe(first.id);
    expect(await show(first.id.slice(-6))).toBe(first.id);
  });

  test("that matches more than one build, or none, is refused", async () => {
    expect((await run(["status", "bld_1"], [second, first])).stderr).toMatch(/matches more than one build/);
    for (const id of ["nothing", first.id.slice(-2), ""]) {
      expect(await run(["status", id], [first])).toMatchObject({
        code: 125,
        stderr: expect.stringContaining("code: build_not_found"),
      });
    }
    expect((await run(["status"])).stderr).toContain("There are no builds yet.");
    expect(await run(["pause"])).toMatchObject({ code: 125, stderr: expect.stringContaining("<id> is missing") });
  });
});

describe("status", () => {
  test("shows tasks, what runs and the money", async () => {
    const sandbox = newId("sbx");
    const view = buildView({
      request: hostile,
      tasks: { ...counts, merged: 1, building: 1, failed: 1 },
      money: { budgetMicroUsd: 5_000_000, spentMicroUsd: 2_500_000, reservedMicroUsd: 100_000 },
      taskList: [
        { id: "cart", status: "building", component: "backend", attempts: 3, level: 1, reason: null },
        { id: "pay", status: "failed", component: "payments", attempts: 9, level: 4, reason: `no\u001b[31m luck` },
      ],
      attempts: [
        {
          id: newId("att"),
          task: "cart",
          number: 3,
          status: "working",
          phase: "working",
          doing: null,
          level: 1,
          sandbox,
          startedAt: Date.now() - 5000,
          heartbeatAt: Date.now() - 1000,
        },
      ],
      sandboxes: [
        {
          id: sandbox,
          provider: "local",
          status: "running",
          purpose: "attempt",
          tasks: ["cart"],
          costMicroUsd: 2000,
          createdAt: Date.now() - 5000,
          activeAt: Date.now() - 3000,
        },
      ],
    });
    const { stdout } = await run(["status", view.id], [view]);
    expect(stdout).toContain("request: a shop with two lines\n");
    expect(stdout).toContain("tasks:   1 failed, 1 merged, 1 building\n");
    expect(stdout).toContain("money:   2.50 USD spent of 5.00 USD, 0.1000 USD reserved\n");
    expect(stdout).toMatch(/cart {2}building {2}backend +3 +1\n/);
    expect(stdout).toMatch(/pay +failed +payments +9 +4 +no luck\n/);
    expect(stdout).toMatch(new RegExp(`cart +working +1 +${sandbox} +\\d+s +\\d+s ago\\n`));
    expect(stdout).toMatch(new RegExp(`${sandbox} +running +local +0.0020 USD +\\d+s ago +attempt +cart\\n`));
  });

  test("tells which provider the server uses, why, and what another one lacks", async () => {
    const view = buildView({});
    const missing = "MODAL_TOKEN_ID and MODAL_TOKEN_SECRET are not set";
    const provider = { name: "local", because: "SANDBOX_PROVIDER is local", others: [{ name: "modal", missing }] };
    const server = createStubServer([view]);
    const health = async () => ({ ...(await server.server.health()), provider });
    const options = { server: { ...server, server: { health } }, env: { NO_COLOR: "1" } };
    const { stdout } = await runCli(["status", view.id], options);
    expect(stdout).toMatch(/^provider: local \(SANDBOX_PROVIDER is local\); modal: MODAL_TOKEN_ID and .* not set$/m);
    expect(JSON.parse((await runCli(["status", "--json", view.id], options)).stdout).provider).toEqual(provider);
  });

  test("says which gate refused a task, how often, why, and what comes next; and what was on main already", async () => {
    const task = { component: "backend", attempts: 2, level: 1 };
    const next = "its agent repairs it, attempt 2 of at most 13";
    const refused = { gate: "main-test", finding: `no\u001b[31m luck\nat all`, times: 3, next };
    const view = buildView({
      taskList: [
        { id: "cart", status: "building", reason: null, ...task, refused },
        { id: "pay", status: "satisfied", reason: "already on main", ...task },
      ],
    });
    const { stdout } = await run(["status"], [view]);
    expect(stdout).toMatch(/REFUSED +BY +TIMES +NEXT +WHY\n/);
    expect(stdout).toMatch(/cart +main-test +3 +its agent repairs it, attempt 2 of at most 13 +no luck at all\n/);
    expect(stdout).toMatch(/pay +satisfied +backend +2 +1 +already on main\n/);
    const { taskList } = JSON.parse((await run(["--json", "status"], [view])).stdout);
    expect(taskList[0].refused).toEqual(refused);
  });

  test.each<[string, Partial<BuildView>, RegExp, RegExp]>([
    [
      "a budget that is spent",
      { status: "paused", reason: "budget", money: { budgetMicroUsd: 5, spentMicroUsd: 5, reservedMicroUsd: 0 } },
      /paused at its budget/,
      /^Continue with a larger budget: slipway resume --budget <usd>/,
    ],
    [
      "a budget that something did not fit in",
      { status: "paused", reason: "budget", money: { budgetMicroUsd: 5, spentMicroUsd: 4, reservedMicroUsd: 0 } },
      /paused at its budget/,
      /Retry what was refused with: slipway resume bld_.*with a larger budget: slipway resume --budget <usd>/,
    ],
    ["its user", { status: "paused", reason: "user" }, /paused until it is resumed/, /slipway resume bld_/],
    [
      "a word about the intent",
      { status: "planning", planning: { stage: "lock", step: "held", hold: "intent" } },
      /the intent is drafted and waits for you/,
      /slipway resume bld_/,
    ],
    ["nothing", { status: "succeeded", reason: "satisfied", endedAt: Date.now() }, /status: +succeeded\n/, /^$/],
  ])("says what a build waits for: %s", async (_, change, shown, advice) => {
    const { stdout, stderr } = await run(["status"], [buildView(change)]);
    expect(stdout).toMatch(shown);
    expect(stderr).toMatch(advice);
  });
});

test("status says where a build's pull request is, or why its last push has failed", async () => {
  const ended = { status: "succeeded", endedAt: Date.now() } as const;
  const opened = await run(["status"], [buildView({ ...ended, pullRequest: "https://example.com/1" })]);
  expect(opened.stdout).toMatch(/^pull: +https:\/\/example\.com\/1$/m);
  const failed = await run(["status"], [buildView({ ...ended, remoteFailure: "git push\nended with 128" })]);
  expect(failed.stdout).toMatch(/^remote: +git push ended with 128$/m);
});

test("status says why a build has no plan", async () => {
  const view = buildView({
    status: "failed",
    reason: "unplannable",
    planning: { stage: "draft", step: "failed", hold: "plan" },
  });
  const data = { stage: "draft", round: 1, code: "missing_key", message: "set ANTHROPIC_API_KEY" };
  const events = async () => ({ events: [eventOf({ type: "stage.failed", data }, 3)], next: 3, ended: true });
  const { stdout } = await run(["status"], [view], { events });
  expect(stdout).toContain("why:     draft failed: set ANTHROPIC_API_KEY (missing_key)\n");
});

describe("orders", () => {
  test("go to the build, and its status is shown", async () => {
    for (const order of ["pause", "cancel"]) {
      const view = buildView({ status: "paused", reason: "user" });
      const { stdout, server } = await run([order, view.id], [view]);
      expect({ stdout, calls: server.calls }).toEqual({
        stdout: `${view.id} paused until it is resumed\n`,
        calls: [[order, view.id]],
      });
    }
  });

  test("resume sets the budget with the same order, and releases an intent that is held last", async () => {
    const view = buildView({ planning: { stage: "lock", step: "held", hold: "intent" } });
    const { server } = await run(["resume", "--budget", "50", view.id], [view]);
    expect(server.calls).toEqual([
      ["setBudget", view.id, 50 * microUsdPerUsd, "resume"],
      ["lock", view.id],
    ]);
  });

  test("a resume that changes nothing says why", async () => {
    const view = buildView({ status: "paused", reason: "budget" });
    expect((await run(["resume", view.id], [view])).stderr).toContain(`slipway resume --budget <usd> ${view.id}`);
  });

  test("of a build whose repository is missing say so, and so does its status", async () => {
    const missing = { repository: "/state/builds/x/repository.git", repositoryMissing: true };
    const running = buildView(missing);
    expect((await run(["pause", running.id], [running])).stderr).toMatch(/missing, \/state.*only be cancelled/);
    expect((await run(["status"], [running])).stderr).toContain(`slipway cancel ${running.id}`);
    const ended = buildView({ ...missing, status: "cancelled", reason: "cancelled", endedAt: Date.now() });
    const { stdout, stderr } = await run(["cancel", ended.id], [ended]);
    expect({ stdout, stderr }).toEqual({
      stdout: `${ended.id} cancelled\n`,
      stderr: expect.stringMatching(/missing, \/state.*its work is lost/),
    });
  });

  test("a budget that is none is refused before anything is sent", async () => {
    const view = buildView();
    const { code, stderr, server } = await run(["resume", "--budget", "lots", view.id], [view]);
    expect({ code, stderr }).toMatchObject({ code: 125, stderr: expect.stringContaining('--budget: "lots"') });
    expect(server.calls).toEqual([]);
  });

  test("what the server refuses is told with its code", async () => {
    const view = buildView();
    const refuse = () => Promise.reject(new SlipwayError("build_ended", "the build has ended as failed"));
    const { code, stderr } = await run(["pause", view.id], [view], { pause: refuse });
    expect({ code, stderr }).toMatchObject({ code: 125, stderr: expect.stringContaining("code: build_ended") });
  });
});

describe("logs", () => {
  const next = { level: 2, pattern: null, from: "main" };
  const told = [
    { type: "build.created", data: { mode: "new", hold: "none" } },
    { type: "plan.made", data: { tasks: 1 } },
    {
      type: "attempt.ended",
      data: { task: "cart", attempt: 2, respawn: 0, end: endAs("checks_failed", "x\u001b[2J\ny") },
    },
    { type: "task.retried", data: { task: "cart", failed: null, next, notBeforeMs: 0 } },
    { type: "budget.warned", data: { budgetMicroUsd: 5_000_000 } },
    { type: "satisfaction.checked", data: { round: 1, unsatisfied: ["a", "b"] } },
    { type: "attempt.heard", data: { task: null, attempt: {}, sandbox: ["x"] } },
    { type: "something.new", data: { text: "\u001b[2Jhello" } },
  ];

  test("are one line per event, in plain words", async () => {
    const view = buildView({ status: "succeeded" });
    const { code, stdout } = await run(["logs", "-f", view.id], [view], { follow: follow(...told) });
    expect(code).toBe(0);
    const lines = stdout.split("\n").map((line) => line.replace("2023-11-14T22:13:20.000Z  ", ""));
    expect(lines).toEqual([
      "the build begins (new)",
      "planned: 1 task",
      "cart, attempt 2, failed: checks_failed: x y",
      "cart is retried: level 2: deep analysis",
      "80 % of its budget of 5.00 USD is spent",
      "not satisfied: a, b",
      'attempt.heard {"task":null,"attempt":{},"sandbox":["x"]}',
      'something.new {"text":"\\u001b[2Jhello"}',
      "",
    ]);
  });

  test("of a build that failed or was cancelled exit with 1, as JSON line by line", async () => {
    const view = buildView({ status: "cancelled" });
    const { code, stdout } = await run(["--json", "logs", "-f", view.id], [view], { follow: follow(...told) });
    expect(code).toBe(1);
    expect(
      stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line).sequence),
    ).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });

  test("end with what there is when they are not followed", async () => {
    const view = buildView();
    const events = async (_: BuildId, { after = 0 } = {}) => {
      const rest = after >= 2 ? [] : [eventOf({ type: "build.resumed", data: {} }, after + 1)];
      return { events: rest, next: after + rest.length, ended: false };
    };
    const { code, stdout } = await run(["logs", view.id], [view], { events });
    expect({ code, lines: stdout.match(/resumed\n/g)?.length }).toEqual({ code: 0, lines: 2 });
  });

  test("are left with Ctrl-C, which is no failure", async () => {
    const view = buildView();
    const server = createStubServer([view], {
      follow: (_, { signal } = {}) => ({
        async *[Symbol.asyncIterator]() {
          yield eventOf({ type: "build.resumed", data: {} });
          if (!signal?.aborted) await new Promise((resolve) => signal?.addEventListener("abort", resolve));
          throw signal?.reason;
        },
      }),
    });
    const cli = startCli(["logs", "-f", view.id], { server, onStdout: () => cli.signal("SIGINT") });
    expect(await cli.ended).toMatchObject({ code: 0, stderr: expect.stringContaining("The build continues") });
  });
});

describe("plan", () => {
  let out: string;
  beforeAll(async () => {
    out = await mkdtemp(join(tmpdir(), "slipway-plan-"));
  });
  afterAll(() => rm(out, { recursive: true, force: true }));

  const view = buildView({ status: "paused", reason: "user" });
  const planned = {
    intent: async () => intent,
    plan: async () => plan,
    follow: follow(
      { type: "stage.began", data: { stage: "draft", round: 1 } },
      { type: "intent.drafted", data: { criteria: 2, workflows: 1 } },
      { type: "build.paused", data: { reason: "user", budgetMicroUsd: 1 } },
    ),
  };

  test("names the cost of models and of sandboxes apart, and says when both together exceed the budget", async () => {
    // Each alone is less than the budget of 100 USD.
    const dear = { ...plan, totals: { ...plan.totals, computeUsd: 94.5 } };
    const { stdout, stderr } = await run(["plan", "--out", out, "a", "habit tracker"], [view], {
      ...planned,
      plan: async () => dear,
    });
    expect(stdout).toContain("together: 1h 5m of work, 6.00 USD for models and 94.50 USD for sandboxes; at least");
    expect(stderr).toContain("the plan's estimate exceeds the budget of");
  });

  test("shows the intent and the graph of tasks, and writes both down", async () => {
    const { code, stdout, stderr, server } = await run(["plan", "--out", out, "a", "habit tracker"], [view], planned);
    expect(code).toBe(0);
    expect(server.calls).toMatchObject([["start", { request: "a habit tracker", mode: "new", hold: "plan" }]]);
    expect(stderr).toContain("the intent is drafted: 2 criteria, 1 workflow (0.0120 USD so far)");
    expect(stdout).toContain(
      [
        "Plan 4 tasks, by feature in 1 part",
        "  1 ─ * setup  frontend  10m  1.50 USD",
        "          Make setup",
        "  2 ┬ * list   frontend  30m  1.50 USD  <- setup",
        "    │     Make list",
        "    └   store  frontend  20m  1.50 USD  <- setup",
        "          Make store",
        "  3 ─ * end    frontend   5m  1.50 USD  <- list, store",
        "          Make end",
        "  * critical path: setup -> list -> end",
        "  together: 1h 5m of work, 6.00 USD; at least 45m with any number of sandboxes",
      ].join("\n"),
    );
    expect(stdout).toContain("    add-habit  functional  A habit can be added\n");
    expect(stderr).not.toContain("more than the budget");
    expect(JSON.parse(await readFile(join(out, "slipway-intent.json"), "utf8"))).toEqual(intent);
    expect(JSON.parse(await readFile(join(out, "slipway-plan.json"), "utf8"))).toMatchObject({ tasks: plan.tasks });
  });

  test("tells what the diagnosis has found", async () => {
    const drafted = (problems: string[]) => ({ type: "intent.drafted", data: { criteria: 5, workflows: 2, problems } });
    const told = { ...planned, follow: follow(drafted(["npm test ended\u001b[2J with exit code 1"]), drafted([])) };
    const { stderr } = await run(["plan", "-m", "fix", "--dir", out, "--out", out, "mend it"], [view], told);
    expect(stderr).toContain("the diagnosis found npm test ended with exit code 1; the intent is drafted: 5 criteria");
    expect(stderr).toContain("the diagnosis found nothing wrong; the intent is drafted");
  });

  test("says when the estimates are above the budget", async () => {
    const poor = { ...view, money: { ...view.money, budgetMicroUsd: 5_000_000 } };
    const { code, stderr } = await run(["plan", "--out", out, "a", "habit tracker"], [poor], planned);
    expect(code).toBe(0);
    expect(stderr).toContain("the plan's estimate exceeds the budget of 5.00 USD");
  });

  test("takes a repository, a partition and a budget", async () => {
    const argv = [
      "plan",
      "--mode",
      "fix",
      "--dir",
      out,
      "--partition",
      "phase",
      "--budget",
      "2.5",
      "-o",
      out,
      "mend it",
    ];
    const { code, server } = await run(argv, [view], planned);
    expect(code).toBe(0);
    expect(server.calls).toMatchObject([
      [
        "start",
        { mode: "fix", source: { directory: out }, settings: { partition: "phase", budgetMicroUsd: 2_500_000 } },
      ],
    ]);
  });

  test.each<[string, string[], RegExp]>([
    ["nothing", ["plan", " "], /The request is empty/],
    ["an unknown mode", ["plan", "--mode", "old", "x"], /--mode: "old" is not one of new, feature, fix/],
    ["a directory for a new app", ["plan", "-m", "new", "--dir", ".", "x"], /A new app has no repository/],
    [
      "two sources",
      ["plan", "-m", "fix", "--dir", ".", "--repo", "https://x/y", "x"],
      /--dir cannot be combined with --repo/,
    ],
    ["a directory that there is not", ["plan", "-m", "fix", "--dir", "/nope", "x"], /There is no directory \/nope/],
    ["a budget that is none", ["plan", "--budget", "-3", "x"], /--budget/],
    ["a budget of nothing", ["plan", "--budget", "0", "x"], /--budget: 0 is out of range\..*more than 0/s],
    ["a budget beyond all", ["plan", "--budget", "2000000", "x"], /--budget: 2000000 is out of range/],
    ["too many words", ["plan", "x".repeat(20_001)], /The request has 20001 characters; the limit is 20000/],
    [
      "a file as directory",
      ["plan", "--out", import.meta.filename, "x"],
      /--out: .*builds\.test\.ts is not a directory/,
    ],
    ["a file as parent", ["plan", "--out", `${import.meta.filename}/a/b`, "x"], /--out: .*test\.ts is not a directory/],
    ["the kernel's directory", ["plan", "--out", "/proc/a/b", "x"], /--out: \/proc\/a\/b cannot hold files/],
  ])("of %s begins no build", async (_, argv, expected) => {
    const { code, stderr, server } = await run(argv, [view], planned);
    expect({ code, calls: server.calls }).toEqual({ code: 125, calls: [] });
    expect(stderr).toMatch(expected);
  });

  test("with --edit and without a terminal begins no build", async () => {
    const server = createStubServer([view], planned);
    const { code, stderr } = await runCli(["plan", "--edit", "--out", out, "x"], { server, env: { EDITOR: "false" } });
    expect({ code, calls: server.calls }).toEqual({ code: 125, calls: [] });
    expect(stderr).toContain("--edit needs a terminal");
  });

  test("that a stage fails for ends with the stage's code", async () => {
    const data = { stage: "draft", round: 1, code: "missing_key", message: "ANTHROPIC_API_KEY is not set" };
    const { code, stderr } = await run(["plan", "x"], [view], { follow: follow({ type: "stage.failed", data }) });
    expect({ code, stderr }).toMatchObject({
      code: 125,
      stderr: expect.stringMatching(/ANTHROPIC_API_KEY.*code: missing_key/s),
    });
  });

  test("that its budget does not cover exits with 1 and says what to do", async () => {
    const poor = buildView({
      status: "paused",
      reason: "budget",
      planning: { stage: "plan", step: "refused", hold: "plan" },
    });
    const parts = {
      follow: follow(
        { type: "stage.failed", data: { stage: "plan", round: 1, code: "budget_exhausted", message: "no money" } },
        { type: "build.paused", data: { reason: "budget", budgetMicroUsd: 1 } },
      ),
    };
    const { code, stdout, stderr } = await run(["plan", "x"], [poor], parts);
    expect({ code, stdout }).toEqual({ code: 1, stdout: `${poor.id} paused at its budget\n` });
    expect(stderr).toContain("slipway resume --budget <usd>");
  });
});
