import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { endAs, type SandboxId, SlipwayError, type SnapshotId } from "@slipway/contract";
import type { AttemptWork } from "@slipway/engine";
import type { ScriptedProgram, ScriptedRequest } from "@slipway/gateway/scripted";
import { projectPath, run } from "@slipway/sandbox";
import { expect, it, vi } from "vitest";
import { attemptAt } from "../../testing/plans.ts";
import { openWorld, type WorldWith } from "../../testing/world.ts";
import { dropBranches } from "../merging/branches.ts";

vi.setConfig({ testTimeout: 240_000 });

/** Git and sandboxes beside other tests. */
const patient = { timeout: 60_000 };

type Actions = NonNullable<Awaited<ReturnType<ScriptedProgram>>["actions"]>;

const satisfied = {
  tool: "state_criterion",
  input: { criterion: "add-item", satisfied: true, evidence: "It is there." },
} as const;
const untilGo = { run: "until [ -e /tmp/go ]; do sleep 0.05; done" };

const shopping = {
  task: [{ write: "list.txt", content: "socks\n" }],
  findings: [{ write: "list.txt", content: "socks\nshoes\n" }],
  conflict: [{ write: "list.txt", content: "socks\nshoes\n" }],
};

type Kind = "task" | "intent" | "findings" | "conflict";

function kindOf({ lastPrompt }: ScriptedRequest): Kind {
  if (/Checks of your work have found/.test(lastPrompt)) return "findings";
  if (/conflict/.test(lastPrompt)) return "conflict";
  return /Go through the criteria/.test(lastPrompt) ? "intent" : "task";
}

/** Does the actions for each kind of prompt one after another, and tells what it was asked. */
function agent(parts: Partial<Record<Kind, Actions>>, asked: string[] = []): ScriptedProgram {
  const all = { task: [], intent: [satisfied], findings: [], conflict: [], ...parts };
  return (request) => {
    const kind = kindOf(request);
    asked.push(`${kind} ${request.step}`);
    const action = all[kind][request.step];
    return action === undefined ? { text: "Done." } : { actions: [action] };
  };
}

async function filesOf({ repository }: WorldWith<"attempts">, commit: string): Promise<Record<string, string>> {
  const files = await repository.read(commit, () => true);
  return Object.fromEntries([...files].map(([path, content]) => [path, content.toString()]));
}

async function expectNothingLeft({ attempts, bridge, build, provider, warnings }: WorldWith<"attempts">) {
  await attempts.close(build, { cancelled: false });
  expect(await provider.list()).toEqual([]);
  expect(await provider.snapshots.list()).toEqual([]);
  expect((await bridge.read(build.id, { after: 0 })).messages).toEqual([]);
  expect(warnings).toEqual([]);
}

it("an attempt's work becomes a candidate, and after findings on a newer main another one", async () => {
  await using site = await openWorld({
    sandboxes: "local",
    model: agent(shopping),
    attempts: {},
  });
  const { attempts, build, repository, store } = site;
  const item = attemptAt("list");
  await attempts.carryOut(build, [item]);
  const first = await site.reported("candidate.offered");
  expect(first).toMatchObject({ task: "list", attempt: 1, respawn: 0, offer: 1 });
  expect(await filesOf(site, first["commit"])).toEqual({ "list.txt": "socks\n" });
  const [made] = await site.reports("main.made");
  expect(made?.["commit"]).toBe(await repository.main());
  expect(await site.reports("attempt.heard")).toHaveLength(1);
  const [{ sandbox }] = (await site.reports("sandbox.changed")) as [Record<string, unknown>];
  const config = { image: expect.anything(), limits: { memoryMb: expect.any(Number) }, tools: ["node", "runner"] };
  expect(sandbox).toMatchObject({ status: "running", reason: "started", tasks: ["list"], config });
  await vi.waitFor(async () => {
    const last = (await site.reports("sandbox.changed")).at(-1);
    expect(last?.["sandbox"]).toMatchObject({ tasks: ["list"], status: "running" });
    expect(last?.["sandbox"].costMicroUsd).toBeGreaterThan(0);
  }, patient);
  const phases = (await site.reports("attempt.progress")).filter(({ status }) => status === "begun");
  expect(phases.map(({ phase }) => phase)).toEqual(["initialise", "build", "integrate", "test", "intent", "verify"]);
  expect((await store.actions.list(build.id)).some(({ action }) => action === "file_change")).toBe(true);
  const costs = await store.ledger.costs(build.id, "task");
  expect(costs.find(({ of }) => of === "list")?.spentMicroUsd).toBeGreaterThan(0);
  expect(attempts.heardAtMs(build.id, "list", 1)).toBeGreaterThan(0);

  const main = await repository.commit({
    tree: first["tree"],
    parents: [made?.["commit"]],
    message: "Another task's",
    atMs: 0,
  });
  await repository.moveMain(made?.["commit"], main);
  await attempts.mainMoved(build, main);
  const answer = { offer: 1, findings: [{ gate: "intent", text: "There are no shoes." }], main };
  // Asked for again and again, by this process and by the next one: it is told once.
  await attempts.carryOut(build, [{ ...item, answer }]);
  await attempts.carryOut(build, [{ ...item, answer }]);
  await site.restart();
  await site.attempts.reattach(build, [{ ...item, answer }]);
  const second = await site.reported("candidate.offered", ({ offer }) => offer === 2);
  expect(await filesOf(site, second["commit"])).toEqual({ "list.txt": "socks\nshoes\n" });
  expect(await repository.isAncestor(main, second["commit"])).toBe(true);
  expect(await site.reports("candidate.offered")).toHaveLength(2);
  await expectNothingLeft(site);
});

/** An offer that comes back with findings, and with a newer main that is hard to get into its sandbox. */
async function sendBack(site: WorldWith<"attempts">, item: AttemptWork): Promise<string> {
  const { attempts, build, repository } = site;
  await attempts.carryOut(build, [item]);
  const { tree } = await site.reported("candidate.offered");
  const begun = await repository.main();
  const main = await repository.commit({ tree, parents: [begun], message: "Another task's", atMs: 0 });
  await repository.moveMain(begun, main);
  const findings = [{ gate: "intent", text: "There are no shoes." }];
  await attempts.carryOut(build, [{ ...item, answer: { offer: 1, findings, main } }]);
  return main;
}

it("a newer main that a sandbox cannot take yet is sent later, followed by the findings", async () => {
  const refusals = [new SlipwayError("provider_unavailable", "the keeper is away")];
  await using site = await openWorld({
    sandboxes: "local",
    model: agent(shopping),
    attempts: { refuseMain: () => refusals.pop() },
  });
  const main = await sendBack(site, attemptAt("list"));
  const { commit } = await site.reported("candidate.offered", ({ offer }) => offer === 2);
  expect(await site.repository.isAncestor(main, commit)).toBe(true);
  expect(refusals).toEqual([]);
});

it("an attempt that cannot receive a newer main is interrupted and does not wait for its findings", async () => {
  const refuseMain = () => new SlipwayError("out_of_disk", "no space left on device");
  await using site = await openWorld({ sandboxes: "local", model: agent(shopping), attempts: { refuseMain } });
  await sendBack(site, attemptAt("list"));
  const { end } = await site.reported("attempt.ended");
  expect(end).toEqual(endAs("unavailable", "no space left on device"));
});

it("an attempt whose sandbox died continues from its checkpoint and repeats no step, across a restart", async () => {
  const asked: string[] = [];
  await using site = await openWorld({
    sandboxes: "local",
    model: agent(
      {
        task: [{ run: "echo once >> once.txt" }, { write: "list.txt", content: "socks\n" }],
        intent: [untilGo, satisfied],
      },
      asked,
    ),
    attempts: {},
  });
  const { build, provider } = site;
  const item = attemptAt("list");
  await site.attempts.carryOut(build, [item]);
  const { checkpoint } = await site.reported("checkpoint.made", (data) => data["checkpoint"].phase === "test");
  await (await provider.get(checkpoint.sandbox)).destroy();
  expect(await site.reported("attempt.ended")).toMatchObject({ respawn: 0, end: { reason: "runner_lost" } });

  await site.restart();
  await site.attempts.reattach(build, [{ ...item, respawn: 1 }]);
  const { sandbox } = await site.reported("attempt.heard", ({ respawn }) => respawn === 1);
  await site.restart();
  await site.attempts.reattach(build, [{ ...item, respawn: 1 }]);
  await (await provider.get(sandbox as SandboxId)).files.write("/tmp/go", "");
  const offered = await site.reported("candidate.offered");
  expect(offered).toMatchObject({ respawn: 1, offer: 1 });
  expect(await filesOf(site, offered["commit"])).toEqual({ "list.txt": "socks\n", "once.txt": "once\n" });
  expect(asked.filter((one) => one.startsWith("task"))).toEqual(["task 0", "task 1", "task 2"]);
  expect(await site.reports("candidate.offered")).toHaveLength(1);
  expect(await site.reports("attempt.ended")).toHaveLength(1);
  await expectNothingLeft(site);
});

it("an attempt goes on in its sandbox's next life and repeats no finished step", async () => {
  const lifetimeMs = 300_000;
  let lives = 0;
  const life = {
    lifetimeMs,
    get handoverMs() {
      // Soon in the first life, never in the second.
      return lives++ === 0 ? lifetimeMs - 25_000 : 0;
    },
  };
  await using site = await openWorld({
    sandboxes: "local",
    model: agent({
      task: [{ run: "echo once >> once.txt" }, { write: "list.txt", content: "socks\n" }],
      intent: [untilGo, satisfied],
    }),
    attempts: { life },
  });
  const { build, provider } = site;
  await site.attempts.carryOut(build, [attemptAt("list")]);
  const { checkpoint } = await site.reported("checkpoint.made", (data) => data["checkpoint"].phase === "handover");
  const sandbox = await provider.get(checkpoint.sandbox);
  await vi.waitFor(async () => expect((await sandbox.info()).state).toBe("running"), patient);
  await sandbox.files.write("/tmp/go", "");
  const offered = await site.reported("candidate.offered");
  expect(offered).toMatchObject({ respawn: 0, offer: 1 });
  expect(await filesOf(site, offered["commit"])).toEqual({ "list.txt": "socks\n", "once.txt": "once\n" });
  expect(await site.reports("attempt.ended")).toEqual([]);
  expect(lives).toBe(2);
  await site.attempts.close(build, { cancelled: false });
});

it("an attempt of a build that another server took ends silently and continues when the build returns", async () => {
  const task = [untilGo, { write: "list.txt", content: "socks\n" }];
  await using site = await openWorld({ sandboxes: "local", model: agent({ task }), attempts: {} });
  const { attempts, build, provider } = site;
  const item = attemptAt("list");
  await attempts.carryOut(build, [item]);
  const { sandbox } = await site.reported("attempt.heard");
  const takeBack = await site.loseBuild();
  await (await provider.get(sandbox as SandboxId)).files.write("/tmp/go", "");
  await vi.waitFor(() => expect(attempts.heardAtMs(build.id, "list", 1)).toBeUndefined(), patient);
  expect(await site.reports("attempt.ended")).toEqual([]);
  expect(site.warnings).toEqual([]);

  await takeBack();
  await attempts.reattach(build, [item]);
  const offered = await site.reported("candidate.offered");
  expect(await filesOf(site, offered["commit"])).toEqual({ "list.txt": "socks\n" });
  expect(await provider.list()).toHaveLength(1);
  await expectNothingLeft(site);
});

it("an attempt without money waits and continues when there is more", async () => {
  const asked: string[] = [];
  await using site = await openWorld({
    sandboxes: "local",
    model: agent({ task: [{ write: "list.txt", content: "socks\n" }] }, asked),
    attempts: { budgetMicroUsd: 1 },
  });
  const { attempts, build, provider } = site;
  const item = attemptAt("list");
  await attempts.carryOut(build, [item]);
  expect(await site.reported("attempt.ended")).toMatchObject({ end: { reason: "budget" }, budgetMicroUsd: 1 });
  await attempts.carryOut(build, [{ ...item, paused: true }]);
  await site.reported("checkpoint.made", (data) => data["checkpoint"].phase === "paused");
  await vi.waitFor(async () => expect(await provider.list()).toMatchObject([{ state: "stopped" }]), patient);
  await site.apply(build, { budgetMicroUsd: 10_000_000 });
  await attempts.carryOut(build, [item]);
  const offered = await site.reported("candidate.offered");
  expect(await filesOf(site, offered["commit"])).toEqual({ "list.txt": "socks\n" });
  expect(asked.filter((one) => one.startsWith("task"))).toEqual(["task 0", "task 1"]);
  expect((await site.reports("attempt.heard")).length).toBe(1);
  await expectNothingLeft(site);
});

it("an attempt that was refused money asks again with its build, once the build knows of the refusal", async () => {
  const budgetMicroUsd = 10_000_000;
  await using site = await openWorld({
    sandboxes: "local",
    model: agent({ task: [{ write: "list.txt", content: "socks\n" }] }),
    attempts: { budgetMicroUsd },
  });
  const { build, store } = site;
  const others = { request: "others", account: build.id, holder: "others", kind: "model" as const };
  await store.ledger.reserve({ ...others, microUsd: budgetMicroUsd - 1 });
  const item = attemptAt("list");
  await site.attempts.carryOut(build, [item]);
  await site.reported("attempt.ended", ({ end }) => end.reason === "budget");
  await store.ledger.settle({ request: "others", microUsd: 0, provider: "p", end: "complete", estimated: false });
  await site.restart();
  await site.attempts.reattach(build, [item]);
  await site.restart();
  expect(await site.reports("attempt.ended")).toHaveLength(1);

  await site.apply(build, {});
  await site.attempts.reattach(build, [{ ...item, paused: true }]);
  await site.attempts.carryOut(build, [item]);
  const offered = await site.reported("candidate.offered");
  expect(await filesOf(site, offered["commit"])).toEqual({ "list.txt": "socks\n" });
  await expectNothingLeft(site);
});

it("a build's secrets reach only its attempts' requests, not agents, files, prompts or the store", async () => {
  const secret = { host: "api.example.com", header: "x-key", value: "t0p-5ecret" };
  const prompts: string[] = [];
  const program = agent({ task: [{ run: "env > env.txt; cat /proc/*/environ > environ.txt 2>/dev/null; true" }] });
  await using site = await openWorld({
    sandboxes: "local",
    model(request) {
      prompts.push(request.lastPrompt);
      return program(request);
    },
    attempts: {},
  });
  const { build, provider, directory } = site;
  await site.secrets.keep(build.id, [secret]);
  const item = attemptAt("list");
  await site.attempts.carryOut(build, [item]);
  const { commit } = await site.reported("candidate.offered");
  expect((await filesOf(site, commit))["env.txt"]).toContain("HTTPS_PROXY=");
  expect(prompts.join("\n")).toContain("api.example.com: x-key");

  // Another process has them, too.
  await site.restart();
  await site.attempts.reattach(build, [{ ...item, respawn: 1 }]);
  const { sandbox } = await site.reported("attempt.heard", ({ respawn }) => respawn === 1);
  const { network } = await (await provider.get(sandbox as SandboxId)).info();
  expect(network).toMatchObject({ registries: true, secrets: [{ host: secret.host, header: secret.header }] });

  const { stdout } = await promisify(execFile)("grep", ["-rlF", "t0p-5ecret", directory]).catch((error) => error);
  const holders = (stdout as string)
    .trim()
    .split("\n")
    .map((path) => path.slice(directory.length + 1));
  const own = `builds/${build.id}/secrets.json`;
  expect(holders).toContain(own);
  expect(holders.filter((path) => path !== own && !path.startsWith("state/records/"))).toEqual([]);
  expect(prompts.join("\n")).not.toContain("t0p-5ecret");
  await expectNothingLeft(site);
});

it("the next attempt continues in the sandbox that the last one left", async () => {
  await using site = await openWorld({
    sandboxes: "local",
    model: ({ lastPrompt, step }) =>
      step > 0
        ? { text: "Done." }
        : {
            actions: [
              /An earlier attempt/.test(lastPrompt)
                ? { write: "b.txt", content: "b" }
                : { run: "echo a > a.txt; exit 1" },
            ],
          },
    attempts: {},
  });
  const { attempts, build, provider } = site;
  const first = attemptAt("list");
  await attempts.carryOut(build, [first]);
  await site.reported("candidate.offered");
  const next = attemptAt("list", { number: 2, from: "last-attempt", level: 1 });
  await attempts.carryOut(build, [{ type: "end-attempt", id: first.id, task: "list", keepSandbox: true }, next]);
  const offered = await site.reported("candidate.offered", ({ attempt }) => attempt === 2);
  expect(Object.keys(await filesOf(site, offered["commit"]))).toEqual(["a.txt", "b.txt"]);
  // What it began with is removed once it has a checkpoint of its own.
  await vi.waitFor(
    async () => expect((await provider.list()).map(({ labels }) => labels["attempt"])).toEqual([next.id]),
    patient,
  );
  await expectNothingLeft(site);
});

it("main's dependencies are present when an attempt begins and are not installed again", async () => {
  let base: SnapshotId | null = null;
  await using site = await openWorld({
    sandboxes: "local",
    model: agent({ task: [{ run: "cat node_modules/dependency/index.js > copied.js" }] }),
    attempts: { base: () => base },
  });
  const { attempts, build, provider, directory, repository } = site;
  const app = join(directory, "app");
  const manifest = JSON.stringify({ name: "app", private: true });
  await mkdir(app);
  await writeFile(join(app, "package.json"), manifest);
  await repository.create({ from: { directory: app }, atMs: 0 });
  const installed = await provider.create({});
  await installed.files.hydrate({
    [`${projectPath}/package.json`]: manifest,
    [`${projectPath}/node_modules/dependency/index.js`]: "module.exports = 1;",
  });
  base = (await installed.snapshot({ expiresInMs: 600_000 })).id;
  await installed.destroy();
  await attempts.carryOut(build, [attemptAt("list")]);
  const offered = await site.reported("candidate.offered");
  expect(await filesOf(site, offered["commit"])).toEqual({
    "package.json": manifest,
    "copied.js": "module.exports = 1;",
  });
  const commands = (await site.reports("attempt.progress")).filter(({ text }) => text.startsWith("install"));
  expect(commands.map(({ phase }) => phase)).toEqual(["verify"]);
});

it("agents learn of overlaps between branches before an offer, and their branches are kept", async () => {
  const seen = new Map<string, string>();
  const overlap = "cannot be merged in list.txt";
  const program: ScriptedProgram = ({ step, request: { messages } }) => {
    const words = JSON.stringify(messages);
    const task = /Your task: Make (\w+)/.exec(words)?.[1] ?? "";
    seen.set(task, words);
    const isIntent = words.includes("Go through the criteria");
    if (!isIntent) return step === 0 ? { actions: [{ write: "list.txt", content: `${task}\n` }] } : { text: "Done." };
    // Each look is another call: the same one over and over would be taken for going round in circles.
    if (!words.includes(overlap)) return { actions: [{ run: `${untilGo.run}; sleep 0.1 # ${step}` }] };
    if (task === "two") return { actions: [{ run: "sleep 600" }] };
    return words.includes("It is there.") ? { text: "Done." } : { actions: [satisfied] };
  };
  await using site = await openWorld({ sandboxes: "local", model: program, attempts: { tasks: ["one", "two"] } });
  const { attempts, build, provider, repository } = site;
  const [first, second] = [attemptAt("one"), attemptAt("two")];
  await attempts.carryOut(build, [first, second]);
  const sandboxOf = async (name: string) => {
    const { sandbox } = await site.reported("attempt.heard", ({ task }) => task === name);
    return await provider.get(sandbox as SandboxId);
  };
  const sandboxes = [await sandboxOf("one"), await sandboxOf("two")];
  for (const sandbox of sandboxes) {
    await run(sandbox, "until grep -q list.txt /workspace/project/.slipway/context/conflicts.md; do sleep 0.05; done");
  }
  const open = await repository.openBranches();
  expect([...open.keys()].toSorted()).toEqual([first.id, second.id].toSorted());
  expect(await site.reports("candidate.offered")).toEqual([]);
  for (const sandbox of sandboxes) await sandbox.files.write("/tmp/go", "");
  await vi.waitFor(() => {
    for (const task of ["one", "two"]) expect(seen.get(task)).toMatch(/(one-1 and two-1|two-1 and one-1) cannot be/);
  }, patient);
  expect((await site.reported("candidate.offered"))["commit"]).toBe(open.get(first.id));
  await expectNothingLeft(site);
  expect(await repository.openBranches()).toEqual(open);
});

it("an unread offer is kept when the build ends", async () => {
  await using site = await openWorld({ sandboxes: "local", model: agent(shopping), attempts: {} });
  const { attempts, build, repository } = site;
  const item = attemptAt("list");
  await attempts.carryOut(build, [item]);
  const { commit } = await site.reported("candidate.offered");
  await attempts.close(build, { cancelled: true });
  await dropBranches(repository, { merges: [], candidates: [], attempts: [item] });
  expect(await repository.openBranches()).toEqual(new Map([[item.id, commit]]));
});

it("attempts of a build learn of each other's files, messages and overlaps", async () => {
  const seen: string[] = [];
  const program: ScriptedProgram = (request) => {
    const {
      lastPrompt,
      step,
      request: { messages },
    } = request;
    if (kindOf(request) !== "task") return agent({})(request);
    seen.push(JSON.stringify(messages));
    const isFirst = /Your task: Make one/.test(lastPrompt) || /Your task: Make one/.test(JSON.stringify(messages));
    const actions = isFirst
      ? [
          { tool: "claim_files", input: { paths: ["list.txt"] } },
          { tool: "tell_others", input: { title: "Lists are plain text", text: "One thing a line." } },
          { write: "list.txt", content: "one\n" },
        ]
      : [
          untilGo,
          { tool: "claim_files", input: { paths: ["list.txt"] } },
          { tool: "read_context", input: { name: "discoveries" } },
          { write: "list.txt", content: "two\n" },
        ];
    // Who gets no answer in time claims again.
    const unanswered = JSON.stringify(messages).split("Nobody has answered").length - 1;
    const action = actions[step - unanswered];
    return action === undefined ? { text: "Done." } : { actions: [action] };
  };
  await using site = await openWorld({ sandboxes: "local", model: program, attempts: { tasks: ["one", "two"] } });
  const { attempts, build, bridge, provider } = site;
  await attempts.carryOut(build, [attemptAt("one"), attemptAt("two")]);
  await site.reported("candidate.offered", ({ task }) => task === "one");
  const { sandbox } = await site.reported("attempt.heard", ({ task }) => task === "two");
  const other = await provider.get(sandbox as SandboxId);
  await run(other, "until grep -q plain /workspace/project/.slipway/context/discoveries.md; do sleep 0.05; done");
  await other.files.write("/tmp/go", "");
  await site.reported("candidate.offered", ({ task }) => task === "two");
  const words = seen.join("\n");
  expect(words).toContain("list.txt: one-1");
  expect(words).toContain("Lists are plain text");
  await vi.waitFor(async () => {
    const { messages } = await bridge.read(build.id, { after: 0, topics: ["conflicts"] });
    expect(messages).toMatchObject([
      { payload: { paths: ["list.txt"], between: expect.arrayContaining(["one-1", "two-1"]) } },
    ]);
  }, patient);
  await expectNothingLeft(site);
  expect(await bridge.claims(build.id)).toEqual([]);
});
