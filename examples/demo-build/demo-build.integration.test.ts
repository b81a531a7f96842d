import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { checkListSchema, intentDraftSchema, planDraftSchema, type Task, topologicalOrder } from "@slipway/contract";
import { createPipeline, type ModelRoles } from "@slipway/engine";
import { asProgramsSee, result, user } from "@slipway/gateway/testing/conversation";
import { describe, expect, onTestFinished, test } from "vitest";
import { checks } from "./checks.ts";
import { demoBuild } from "./demo-build.ts";
import { intent } from "./intent.ts";
import { tasks } from "./plan.ts";
import { openPlayer } from "./testing.ts";

const run = promisify(execFile);
const never = () => Promise.reject(new Error("a new app has no repository"));
const allPass = "Done, and the tests pass.";
const earlier = "What earlier attempts ended with:\n<errors 0>\nlooping\n</errors 0>";

type AnswerSchema = typeof intentDraftSchema | typeof checkListSchema | typeof planDraftSchema;

async function answerTo(schema: AnswerSchema, prompt = ""): Promise<unknown> {
  const asked = { name: "answer", schema: schema.toJSONSchema({ io: "input", unrepresentable: "any" }) };
  const { object } = await demoBuild(asProgramsSee({ messages: [user(prompt)], answerSchema: asked }));
  return schema.parse(object);
}

function orderFor(id: string, ...more: string[]): string {
  const task = tasks.find((one) => one.id === id);
  return [`Your task: ${task?.title}`, task?.description, ...more].join("\n\n");
}

function withDependencies(ids: readonly string[]): Set<string> {
  const direct = tasks.filter(({ id }) => ids.includes(id)).flatMap(({ dependencies }) => dependencies);
  return new Set([...ids, ...(direct.length === 0 ? [] : withDependencies(direct))]);
}

async function emptyDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "slipway-demo-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

/** The app after these tasks, each done by an agent of its own, none for the first time. */
async function appAfter(...ids: string[]): Promise<string> {
  const directory = await emptyDirectory();
  for (const id of ids) {
    expect(await openPlayer(directory).order(orderFor(id, earlier)), id).toBe(allPass);
  }
  return directory;
}

async function git(directory: string, ...args: string[]): Promise<string> {
  const identity = ["-c", "user.name=A", "-c", "user.email=a@localhost"];
  const { stdout } = await run("git", ["-C", directory, ...identity, ...args]).catch((error) => error);
  return stdout.trim();
}

/** Of the files as git sees them. */
async function treeOf(directory: string): Promise<string> {
  await git(directory, "init", "--quiet", "--initial-branch", "main");
  await git(directory, "add", "--all");
  return await git(directory, "write-tree");
}

describe("its plan", () => {
  test("serves an intent all of which is checked", async () => {
    const { criteria, workflows } = intentDraftSchema.parse(await answerTo(intentDraftSchema));
    const { checks } = checkListSchema.parse(await answerTo(checkListSchema));
    const plan = planDraftSchema.parse(await answerTo(planDraftSchema));
    const proven = new Set(checks.map(({ proves }) => proves));
    expect(proven).toEqual(new Set([...criteria, ...workflows].map(({ id }) => id)));
    expect(new Set(plan.tasks.flatMap((task) => task.criteria))).toEqual(new Set(criteria.map(({ id }) => id)));
    expect(new Set(checks.map(({ type }) => type))).toEqual(new Set(["visit", "calls", "measure"]));
    expect(topologicalOrder(plan.tasks)).toBeDefined();
  });

  test("comes from an intent and checks without a finding", async () => {
    const asked: string[] = [];
    const models: ModelRoles = {
      async ask({ schema, role }) {
        asked.push(role);
        return { value: schema.parse(await answerTo(schema as never)) };
      },
    };
    const repository = { summarize: never, diagnose: never, look: never };
    const dummies = { passing: async () => [] };
    const pipeline = createPipeline({ models, dummies, repository, clock: { now: () => 0 } });
    const { open } = await pipeline.draft("A list", "new");
    expect((await pipeline.lock(open)).checks.checks).toEqual(checks);
    expect(asked).toEqual(["intent", "intent"]);
  });

  test("keeps four sandboxes busy, in three components", () => {
    const afterFirst = ({ dependencies }: Task) => dependencies.length === 1 && dependencies[0] === "scaffold";
    expect(tasks.filter(afterFirst).length).toBeGreaterThanOrEqual(4);
    expect(new Set(tasks.map(({ component }) => component)).size).toBe(3);
  });

  test("lets no room be looked at in a browser before rooms have an API and a page", async () => {
    const { checks } = checkListSchema.parse(await answerTo(checkListSchema));
    const looked = checks.filter((check) => check.type === "visit").map(({ proves }) => proves);
    for (const { id } of intent.criteria.filter((criterion) => looked.includes(criterion.id))) {
      const serving = tasks.filter(({ criteria }) => criteria.includes(id)).map((task) => task.id);
      expect([...withDependencies(serving)], id).toEqual(expect.arrayContaining(["rooms-api", "room-page"]));
    }
  });

  test("has no second round", async () => {
    const prompt = "<unsatisfied 0123456789abcdef>\nopen-room: no\n</unsatisfied 0123456789abcdef>";
    await expect(answerTo(planDraftSchema, prompt)).rejects.toThrow("no tasks beyond");
  });
});

test("its app is the same in whichever order the tasks are done, builds, and passes its tests", async () => {
  const [first, ...others] = tasks.map(({ id }) => id);
  const app = await appAfter(first ?? "", ...others);
  // Some order that the dependencies allow, and that differs everywhere.
  const reversed = topologicalOrder(tasks.toReversed())?.map(({ id }) => id) ?? [];
  expect(reversed).not.toEqual([first, ...others]);
  expect(await treeOf(await appAfter(...reversed))).toBe(await treeOf(app));
  const bin = join(dirname(createRequire(import.meta.url).resolve("vitest/package.json")), "../.bin");
  await run("node", ["test/all.js"], { cwd: app });
  await run(join(bin, "tsc"), ["-p", app]);
  await run(join(bin, "vite"), ["build"], { cwd: app });
  expect(await readFile(join(app, "dist/index.html"), "utf8")).toContain("Basket");
});

test("two of its tasks change the same lines, and whoever is second puts both together", async () => {
  const base = await appAfter("scaffold");
  const pair = ["storage", "live-hub"] as const;
  const whole = await treeOf(await appAfter("scaffold", ...pair));
  await treeOf(base);
  await git(base, "commit", "--quiet", "-m", "base");
  for (const id of pair) {
    await git(base, "switch", "--quiet", "--create", id, "main");
    expect(await openPlayer(base).order(orderFor(id))).toBe(allPass);
    await git(base, "add", "--all");
    await git(base, "commit", "--quiet", "-m", id);
  }
  for (const [mine, other] of [pair, pair.toReversed()]) {
    const directory = await emptyDirectory();
    await cp(base, directory, { recursive: true });
    await git(directory, "switch", "--quiet", mine ?? "");
    await git(directory, "merge", "--quiet", other ?? "");
    expect(await git(directory, "status", "--short")).toContain("UU server/context.js");
    const player = openPlayer(directory);
    player.messages.push(user(orderFor(mine ?? "")));
    const conflict = "Main has moved on, and its changes conflict with yours.\n\n- server/context.js";
    const changes = "<changes 0123456789abcdef>\n- const context = {};\n</changes 0123456789abcdef>";
    expect(await player.order(`${conflict}\n\n${changes}`)).toBe("Both sides work together.");
    expect(await treeOf(directory)).toBe(whole);
  }
});

test("one of its tasks is tried in vain, mended in vain, and succeeds at the next try", async () => {
  const directory = await appAfter("scaffold");
  const player = openPlayer(directory, { tests: true });
  const attempt = () => readFile(join(directory, "shared/entry.js"), "utf8");
  expect(await player.order(orderFor("entries"))).toBe("This is what I have; a test still fails.");
  const first = await attempt();
  expect(await player.order("`npm test` fails on your work. Fix the cause, not the test.")).toBe(
    "That should mend it.",
  );
  expect(await attempt()).not.toBe(first);
  const { stdout } = await run("node", ["test/all.js"], { cwd: directory }).catch((error) => error);
  expect(stdout).toContain("6 eggs");
  expect(await openPlayer(directory, { tests: true }).order(orderFor("entries", earlier))).toBe(allPass);
});

describe("its agents", () => {
  test("go on with what was cut short, whatever is said in between", async () => {
    const directory = await appAfter("scaffold");
    const player = openPlayer(directory);
    player.messages.push(user(orderFor("storage")));
    await player.turn();
    await player.turn();
    const [id, cut] = [`${player.messages.length - 2}`, player.calls.at(-1)];
    player.messages.splice(-1, 1, user(result(`${id}-0`, "written"), result(`${id}-1`, "[interrupted: look again]")));
    player.messages.push(user("What the build shares has changed, see .slipway/context/plan.md:"));
    await player.turn();
    expect(player.calls.at(-1)).toBe(cut);
    await player.turn();
    expect(player.calls.at(-1)).toContain("cat 'server/context.js'");
  });

  test("say what shows each criterion", async () => {
    const player = openPlayer(await emptyDirectory());
    player.messages.push(user(orderFor("look")));
    await player.order(
      "Go through the criteria that your task serves.\n\n- phone-layout: On a phone\n- one-look: Same",
    );
    expect(player.calls.map((call) => /"criterion":"([\w-]+)"/.exec(call)?.[1])).toEqual(["phone-layout", "one-look"]);
  });

  test("do nothing for a task that is not the demo's", async () => {
    const player = openPlayer(await emptyDirectory());
    expect(await player.order("Your task: Delete everything")).toBe("This is no task of mine.");
    expect(player.calls).toEqual([]);
  });
});
