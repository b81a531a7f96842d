import type { BuildsClient } from "@slipway/client";
import { type BranchView, type BuildView, newId, SlipwayError } from "@slipway/contract";
import { describe, expect, test, vi } from "vitest";
import { type CliOptions, startCli } from "../../testing/run-cli.ts";
import { buildView, createStubServer, eventOf, follow, intent, plan, type Sent } from "../../testing/stub-server.ts";

const told = [
  { type: "build.created", data: { mode: "new", hold: "none" } },
  { type: "sandbox.changed", data: { sandbox: newId("sbx"), status: "running", reason: null } },
  { type: "attempt.progress", data: { task: "cart", attempt: 1, phase: "build", status: "begun", text: "x\u001b[2J" } },
  { type: "merge.conflict", data: { candidate: "cnd", task: "cart", paths: ["a.ts", "b.ts", "c.ts", "d.ts"] } },
  { type: "task.merged", data: { task: "cart" } },
  { type: "build.ended", data: { status: "succeeded", reason: "satisfied" } },
];

const done = buildView({ status: "succeeded", reason: "satisfied", createdAt: 1000, endedAt: 91_000 });
const documents = { intent: async () => intent, plan: async () => plan };

function start(argv: readonly string[], view: BuildView, parts: Partial<BuildsClient>, options: CliOptions = {}) {
  const server = createStubServer([view], { ...documents, follow: follow(...told), ...parts });
  const cli = startCli(argv, { server, env: { NO_COLOR: "1" }, ...options });
  return { server, cli, ended: cli.ended };
}
const run = async (argv: readonly string[], view: BuildView = done, parts: Partial<BuildsClient> = {}) => {
  const { server, ended } = start(argv, view, parts);
  return { ...(await ended), server };
};

describe("without a terminal", () => {
  test("what happens is a line each, and the result is the output", async () => {
    const { code, stdout, stderr, server } = await run(["build", "a", "habit tracker"]);
    expect(code).toBe(0);
    expect(server.calls).toMatchObject([["start", { request: "a habit tracker", mode: "new", hold: "none" }]]);
    expect(stderr.split("\n").slice(1)).toEqual([
      "the build begins (new)",
      "cart, attempt 1, build begun: x",
      "cart conflicts with main at a.ts, b.ts, c.ts and 1 more",
      "cart is merged",
      "ended: succeeded (satisfied)",
      "",
    ]);
    expect(stdout).toMatch(/^succeeded in 1m 30s: a habit tracker\nCriteria\n/);
  });

  test("--json is every event and then the result", async () => {
    const { code, stdout, stderr } = await run(["--json", "build", "x"]);
    const lines = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(lines.slice(0, -1).map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(lines.at(-1)).toMatchObject({ result: { build: { id: done.id, status: "succeeded" }, left: false } });
  });

  test("an interrupt leaves the build to itself", async () => {
    const view = buildView();
    const { cli, ended } = start(["build", "x"], view, {
      follow: endless({ type: "build.resumed", data: {} }, () => cli.signal("SIGINT")),
    });
    expect(await ended).toMatchObject({
      code: 4,
      stdout: "",
      stderr: expect.stringContaining(`slipway watch ${view.id}`),
    });
  });
});

describe("what is asked for", () => {
  test("goes to the server", async () => {
    const words = [
      "-y",
      "--budget",
      "2.5",
      "--parallel",
      "7",
      "--agent",
      "acp:codex",
      "--workers",
      "2",
      "--build-mode",
      "local",
    ];
    const { server } = await run(["build", ...words, "--repo", "git@example.com:shop.git", "x"]);
    expect(server.calls).toMatchObject([
      [
        "start",
        {
          mode: "feature",
          source: { repository: "git@example.com:shop.git" },
          buildMode: "local",
          hold: "none",
          settings: { budgetMicroUsd: 2_500_000, slots: 7, agent: "acp:codex", workers: 2 },
        },
      ],
    ]);
  });

  test("may not be hybrid, nor a build mode in the place of a mode", async () => {
    const hybrid = await run(["build", "-y", "--build-mode", "hybrid", "x"]);
    expect(hybrid.server.calls).toEqual([]);
    expect(hybrid).toMatchObject({ code: 125, stderr: expect.stringMatching(/modal serves it.*mode_unavailable/s) });
    const confused = await run(["build", "-y", "--mode", "modal", "x"]);
    expect(confused).toMatchObject({ code: 125, stderr: expect.stringContaining("--build-mode modal") });
  });

  test("takes secrets along, from the environment where they are there, and shows none", async () => {
    const words = ["--inject", "api.example.com:authorization=env:TOKEN", "--inject", "http://other.example:x-key=k"];
    const options = { env: { NO_COLOR: "1", TOKEN: "Bearer t0p" } };
    const { server, ended } = start(["build", ...words, "x"], done, {}, options);
    const { stdout, stderr } = await ended;
    expect(server.calls[0]).toMatchObject([
      "start",
      {
        secrets: [
          { host: "api.example.com", header: "authorization", value: "Bearer t0p" },
          { scheme: "http", host: "other.example", header: "x-key", value: "k" },
        ],
      },
    ]);
    expect(stdout + stderr).not.toContain("t0p");
  });

  test("may be a repository of this machine, to mend it", async () => {
    const { server } = await run(["build", "--mode", "fix", "--repo", import.meta.dirname, "x"]);
    expect(server.calls).toMatchObject([["start", { mode: "fix", source: { directory: import.meta.dirname } }]]);
  });

  test.each<[string, string[], RegExp]>([
    ["an agent that there is not", ["--agent", "hal"], /--agent: "hal" is not builtin/],
    ["no sandboxes", ["--parallel", "0"], /--parallel: "0" is not a whole number from 1 to 1000/],
    ["too many workers", ["--workers", "5"], /--workers: "5" is not a whole number from 0 to 4/],
    ["a repository for a new app", ["-m", "new", "--repo", "."], /A new app has no repository/],
    ["a path that there is not", ["--repo", "/nope"], /There is no directory \/nope/],
    ["a secret without a host", ["--inject", "x-key=t0p"], /--inject must have the form host:header=value/],
    ["a secret for no host", ["--inject", "*.a.com:x-key=t0p"], /--inject: name one host, without a wildcard/],
    ["a secret that is not set", ["--inject", "a.com:x-key=env:T0P"], /T0P is not set in this environment/],
    ["a secret twice", ["--inject", "a.com:x=1", "--inject", "a.com:X=2"], /--inject: name each header of a host once/],
  ])("with %s begins no build", async (_, words, expected) => {
    const { code, stderr, server } = await run(["build", ...words, "x"]);
    expect({ code, calls: server.calls }).toEqual({ code: 125, calls: [] });
    expect(stderr).toMatch(expected);
  });

  test("of a provider that the server has not is refused with what to do", async () => {
    const refuse = () => Promise.reject(new SlipwayError("provider_mismatch", "this server has sandboxes of local"));
    const { code, stderr } = await run(["build", "x"], done, { start: refuse });
    expect({ code, stderr }).toMatchObject({
      code: 125,
      stderr: expect.stringMatching(/slipway down.*provider_mismatch/s),
    });
  });

  test("without a model names what to set, and the demo", async () => {
    const data = { stage: "draft", round: 1, code: "missing_key", message: "set ANTHROPIC_API_KEY" };
    const { code, stderr } = await run(["build", "x"], done, { follow: follow({ type: "stage.failed", data }) });
    expect(code).toBe(125);
    expect(stderr).toMatch(/slipway down.*npm run demo.*ANTHROPIC_API_KEY.*code: missing_key/s);
  });
});

describe("exits", () => {
  const paused = follow({ type: "build.paused", data: { reason: "budget", budgetMicroUsd: 1 } });
  test.each<[number, Partial<BuildView>, BuildsClient["follow"], RegExp]>([
    [1, { status: "failed", reason: "timeout", endedAt: 5000 }, follow(), /^$/],
    [2, { status: "cancelled", reason: "cancelled", endedAt: 5000 }, follow(), /^$/],
    [3, { status: "paused", reason: "budget" }, paused, /slipway resume --budget <usd>/],
    [3, { status: "paused", reason: "stuck" }, paused, /slipway resume bld_/],
  ])("with %i when it is %o", async (expected, changes, following, advice) => {
    const { code, stderr } = await run(["watch"], buildView(changes), { follow: following });
    expect(code).toBe(expected);
    expect(stderr).toMatch(advice);
  });

  test("with what it is when a watch begins too late, and nothing is followed", async () => {
    const { code, stdout } = await run(["watch"], done, { follow: follow({ type: "no.such", data: {} }) });
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringMatching(/^succeeded/) });
  });
});

describe("on a terminal", () => {
  const held = buildView({ status: "planning", planning: { stage: "lock", step: "held", hold: "both" } });
  const planned = { ...held, status: "paused", reason: "user", planning: null } as const;

  /** Answers each question as it comes. */
  async function answer(
    argv: readonly string[],
    views: readonly BuildView[],
    answers: readonly string[],
    events: readonly Sent[],
  ) {
    const [first = done] = views;
    let shown = 0;
    const server = createStubServer([first], {
      ...documents,
      get: async () => views[Math.min(shown, views.length - 1)] ?? done,
      async *follow() {
        for (const [index, event] of events.entries()) {
          yield eventOf(event, index + 1);
          shown++;
        }
      },
    });
    const cli = startCli(argv, { server, terminal: true, env: { NO_COLOR: "1" } });
    const left = [...answers];
    cli.stdin.on("resume", () => void (left.length > 0 && cli.stdin.write(left.shift())));
    return { ...(await cli.ended), calls: server.calls.map(([name]) => name) };
  }
  const turns = [
    { type: "intent.drafted", data: { criteria: 2, workflows: 1 } },
    { type: "build.paused", data: { reason: "user", budgetMicroUsd: 1 } },
    { type: "build.ended", data: { status: "succeeded", reason: "satisfied" } },
  ];

  test("the intent and the plan are shown and agreed on before work starts", async () => {
    const { code, stderr, calls } = await answer(["build", "x"], [held, planned, done], ["\n", "y\n"], turns);
    expect({ code, calls }).toEqual({ code: 0, calls: ["start", "lock", "resume"] });
    expect(stderr).toMatch(
      /Intent .*A habit can be added.*Is this what you want\?.*Plan 4 tasks.*Carry it out for at most 100\.00 USD\?/s,
    );
  });

  test("a no to the intent cancels, a no to the plan leaves it planned", async () => {
    const cancelled = { ...held, status: "cancelled", endedAt: 5000, reason: "cancelled" } as const;
    const no = await answer(["build", "x"], [held, cancelled], ["n\n"], turns.slice(0, 1));
    expect(no).toMatchObject({ code: 2, calls: ["start", "cancel"] });
    const later = await answer(["build", "x"], [held, planned], ["y\n", "n\n"], turns.slice(0, 2));
    expect(later).toMatchObject({
      code: 3,
      calls: ["start", "lock"],
      stderr: expect.stringContaining("slipway resume"),
    });
  });

  test("--yes asks nothing", async () => {
    const { code, stderr, calls } = await answer(["build", "--yes", "x"], [done], [], turns.slice(2));
    expect({ code, calls }).toEqual({ code: 0, calls: ["start"] });
    expect(stderr).not.toMatch(/Is this what you want|Carry it out/);
  });

  test("the build is drawn, and what happened stays above it", async () => {
    const server = createStubServer([done], { ...documents, follow: follow(...told) });
    const { code, stderr } = await startCli(["build", "-y", "x"], { server, terminal: true }).ended;
    expect(code).toBe(0);
    expect(stderr).toContain("\u001b[32m✓\u001b[0m cart is merged");
    expect(stderr).not.toContain("attempt 1");
  });

  test("what a failed stage leaves to do is not drawn over", async () => {
    const data = { stage: "draft", round: 1, code: "missing_key", message: "set ANTHROPIC_API_KEY" };
    const gate = Promise.withResolvers<void>();
    const server = createStubServer([done], {
      ...documents,
      async *follow() {
        await gate.promise;
        yield eventOf({ type: "stage.failed", data });
      },
    });
    const cli = startCli(["build", "-y", "x"], { server, terminal: true, env: { NO_COLOR: "1" } });
    const draws = () => cli.stderr.text().includes("Ctrl-C: detach");
    await vi.waitFor(() => expect(draws()).toBe(true));
    gate.resolve();
    const { code, stderr } = await cli.ended;
    const [, after = ""] = stderr.split("npm run demo");
    expect({ code, after }).toMatchObject({ code: 125, after: expect.stringContaining("set ANTHROPIC_API_KEY") });
    expect(after).not.toContain("\u001b[");
  });

  describe("Ctrl-C asks", () => {
    /** Presses it once the build is followed; `then` is typed, or pressed, when the question is there. */
    async function interrupt(then: string | "again", after: Partial<BuildView> = {}) {
      const running = buildView();
      let view = running;
      const gate = Promise.withResolvers<void>();
      const order = (name: string) => async () => {
        server.calls.push([name]);
        view = { ...running, ...after };
        gate.resolve();
        return view;
      };
      const server = createStubServer([running], {
        ...documents,
        get: async () => view,
        pause: order("pause"),
        cancel: order("cancel"),
        follow: (_, { signal } = {}) => ({
          async *[Symbol.asyncIterator]() {
            yield eventOf({ type: "build.resumed", data: {} });
            cli.signal("SIGINT");
            await Promise.race([gate.promise, aborted(signal)]);
            yield after.status === "paused"
              ? eventOf({ type: "build.paused", data: { reason: "user", budgetMicroUsd: 1 } }, 2)
              : eventOf({ type: "build.ended", data: { status: "cancelled", reason: "cancelled" } }, 2);
          },
        }),
      });
      const cli = startCli(["watch"], { server, terminal: true, env: { NO_COLOR: "1" } });
      cli.stdin.on("resume", () => {
        if (then === "again") cli.signal("SIGINT");
        else cli.stdin.write(then);
        if (then !== "b\n") return;
        view = { ...running, ...after };
        gate.resolve();
      });
      return { ...(await cli.ended), calls: server.calls.map(([name]) => name) };
    }

    test.each<[string, string, number, string[], Partial<BuildView>]>([
      ["detach", "d\n", 4, [], {}],
      ["detach by a second one", "again", 4, [], {}],
      ["pause", "p\n", 3, ["pause"], { status: "paused", reason: "user" }],
      ["cancel", "c\n", 2, ["cancel"], { status: "cancelled", reason: "cancelled", endedAt: 1 }],
      ["back", "b\n", 0, [], { status: "succeeded", endedAt: 1 }],
    ])("%s", async (_, then, code, calls, after) => {
      const end = await interrupt(then, after);
      expect({ code: end.code, calls: end.calls }).toEqual({ code, calls });
      expect(end.stderr).toContain("[d]etach (the build continues), [p]ause, [c]ancel or [b]ack?");
    });
  });

  test("a server that is away for a while is no reason to fail", async () => {
    let calls = 0;
    const { server } = {
      server: createStubServer([done], {
        ...documents,
        follow: follow(...told),
        get: async () => {
          if (calls++ === 0) throw new SlipwayError("server_unavailable", "the server does not answer");
          return done;
        },
      }),
    };
    const { code } = await startCli(["build", "-y", "x"], { server, terminal: true }).ended;
    expect(code).toBe(0);
    await vi.waitFor(() => expect(calls).toBeGreaterThan(1));
  });
});

describe("merge-queue", () => {
  test("shows the line, with each one's gates", async () => {
    const candidate = {
      id: newId("cnd"),
      attempt: newId("att"),
      commit: "c0ffee0123456789",
      reason: null,
      offeredAt: Date.now(),
    };
    const queue: Awaited<ReturnType<BuildsClient["mergeQueue"]>> = {
      main: "f00d",
      window: 4,
      candidates: [
        {
          ...candidate,
          task: "cart",
          status: "verifying",
          place: 1,
          gates: [
            { name: "build", state: "passed" },
            { name: "tests", state: "running" },
          ],
        },
        {
          ...candidate,
          task: "pay\u001b[2J",
          status: "pending",
          place: null,
          gates: [{ name: "build", state: "open" }],
        },
      ],
      merges: [{ position: 1, task: "setup", commit: "f00d", mergedAt: 1 }],
      gates: [{ name: "build", passed: 2, failed: 1, broken: 0 }],
    };
    const { code, stdout } = await run(["merge-queue"], done, { mergeQueue: async () => queue });
    expect(code).toBe(0);
    expect(stdout).toContain("merged: 1, last setup\n");
    expect(stdout).toContain("gates:  build 2/3 passed\n");
    expect(stdout).toMatch(/^1 {6}cart {2}verifying {2}c0ffee0123 {2}\d+m?s {2}build ✓ {2}tests ▸$/m);
    expect(stdout).toMatch(/^- {6}pay {3}pending .*build ·$/m);
  });

  test("of a build without a main says so", async () => {
    expect((await run(["merge-queue"])).stderr).toContain("main is empty");
  });
});

describe("branches", () => {
  const shown = { commit: "c0ffee0123456789", attempt: newId("att"), at: Date.now() - 90_000 };
  const [one, other] = [newId("cnd"), newId("att")];
  const cart: BranchView = {
    ...shown,
    id: one,
    ref: `refs/candidates/${one}`,
    task: "cart",
    status: "merged",
    reason: null,
  };
  const pay: BranchView = {
    ...shown,
    id: other,
    ref: `refs/open/${other}`,
    task: "pay\u001b[2J",
    status: "unoffered",
    reason: "timeout",
  };
  const kept = { repository: "/var/lib/app/repository.git", branches: [cart, pay] };

  test("are listed with what became of each, and how to fetch one", async () => {
    const { code, stdout, stderr } = await run(["branches"], done, { branches: async () => kept });
    expect(code).toBe(0);
    expect(stdout).toMatch(new RegExp(`^${cart.ref} {2}cart {2}merged +c0ffee0123 {2}\\d+m( \\d+s)? ago$`, "m"));
    expect(stdout).toMatch(new RegExp(`^${pay.ref} +pay {3}unoffered \\(timeout\\) {2}c0ffee0123`, "m"));
    expect(stderr).toBe("To fetch one: git fetch /var/lib/app/repository.git <ref>\n");
  });

  test("are one document with --json", async () => {
    const { stdout, stderr } = await run(["branches", "--json"], done, { branches: async () => kept });
    expect({ said: JSON.parse(stdout), stderr }).toEqual({ said: kept, stderr: "" });
  });

  test("of a build that keeps none are none", async () => {
    expect(await run(["branches"])).toMatchObject({ code: 0, stdout: "", stderr: `${done.id} has no branches\n` });
  });

  test("are discarded by an id or a part of one", async () => {
    const asked: unknown[] = [];
    const parts: Partial<BuildsClient> = {
      branches: async () => kept,
      async discardBranch(...[build, branch]) {
        asked.push([build, branch]);
        return pay;
      },
    };
    for (const text of [pay.id, pay.ref, pay.id.slice(-8)]) {
      const { code, stdout } = await run(["branches", "--discard", text, done.id], done, parts);
      expect({ code, stdout }).toEqual({ code: 0, stdout: `${pay.id} discarded: pay at c0ffee0123456789\n` });
    }
    expect(asked).toEqual(Array(3).fill([done.id, pay.id]));
    const unknown = await run(["branches", "--discard", "zzz"], done, parts);
    expect(unknown).toMatchObject({ code: 125, stderr: expect.stringContaining("code: branch_not_found") });
  });

  test("that are in use are not discarded, and the error says so", async () => {
    const { code, stderr } = await run(["branches", "--discard", cart.id], done, {
      async discardBranch() {
        throw new SlipwayError("branch_in_use", "the merge queue is not done with it");
      },
    });
    expect(code).toBe(125);
    expect(stderr).toContain("code: branch_in_use");
  });
});

describe("preview", () => {
  const address = "http://127.0.0.1:4000/?slipway_token=t0ken";
  const parts: Partial<BuildsClient> = {
    openPreview: async (build) => ({ build, address, instead: null }),
    closePreview: async (build) => ({ build, address: null, instead: null }),
  };

  test("tells where main is to be seen", async () => {
    expect(await run(["preview"], done, parts)).toMatchObject({ code: 0, stdout: `${address}\n`, stderr: "" });
    const { stdout } = await run(["preview", "--json", done.id], done, parts);
    expect(JSON.parse(stdout)).toEqual({ build: done.id, address, instead: null });
  });

  test("is closed with --close", async () => {
    const { code, stdout } = await run(["preview", "--close", done.id], done, parts);
    expect({ code, stdout }).toEqual({ code: 0, stdout: `preview of ${done.id} closed\n` });
    expect(JSON.parse((await run(["preview", "--close", "--json"], done, parts)).stdout)).toEqual({
      build: done.id,
      address: null,
      instead: null,
    });
  });

  test("tells what there is instead of a main that has no dev server", async () => {
    const instead = {
      reason: "main has no dev\u001b[31m server",
      repository: "/state/it's/repository.git",
      branch: "main",
      commit: "f00d",
      gates: [{ name: "build", verdict: "passed" as const }],
    };
    const told: Partial<BuildsClient> = { ...parts, openPreview: async (build) => ({ build, address, instead }) };
    const { code, stdout } = await run(["preview"], done, told);
    expect(code).toBe(0);
    expect(stdout.split("\n")).toEqual([
      `${done.id} has no preview: main has no dev server. You can look at this instead:`,
      "repository: git clone '/state/it'\\''s/repository.git' app",
      "branch:     main, at f00d",
      "gates:      build passed",
      "",
    ]);
    expect(JSON.parse((await run(["preview", "--json"], done, told)).stdout)).toMatchObject({ instead });
  });
});

/** Tells one event, then nothing until it is left. */
function endless(event: Sent, then: () => void): BuildsClient["follow"] {
  return (_, { signal } = {}) => ({
    async *[Symbol.asyncIterator]() {
      yield eventOf(event);
      then();
      await aborted(signal);
    },
  });
}

async function aborted(signal: AbortSignal | undefined): Promise<never> {
  if (!signal?.aborted) await new Promise((resolve) => signal?.addEventListener("abort", resolve));
  throw new SlipwayError("aborted", "the call was aborted");
}
