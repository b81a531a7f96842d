import { createHash } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildViewSchema, mergeQueueViewSchema, newId } from "@slipway/contract";
import { report } from "@slipway/engine";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { createAgentCheck } from "../agents.ts";
import { openWorld, type WorldWith } from "../testing/world.ts";

let server: WorldWith<"http">;
beforeAll(async () => {
  server = await openWorld({ http: {} });
});
afterAll(() => server[Symbol.asyncDispose]());

const post = (body: object) => server.ask("POST", "/v1/builds", { body: { request: "a habit tracker", ...body } });
const commit = (name: string) => createHash("sha1").update(name).digest("hex");

test("a build shows its attempts' words, its candidates, its main and where it runs", async () => {
  const { body } = await post({ settings: { agent: "claude-code" } });
  const { id, settings, candidates, main, repository, preview, criteria } = buildViewSchema.parse(body);
  expect(settings.agent).toBe("claude-code");
  expect({ candidates, main, repository, preview, criteria }).toEqual({
    candidates: [],
    main: null,
    repository: null,
    preview: null,
    criteria: [],
  });
  const candidate = newId("cnd");
  const setup = { task: "setup", attempt: 1, respawn: 0 };
  const said = { phase: "build", status: "begun", text: "writes src/list.ts" };
  await server.tell(
    id,
    report("main.made", "main", { commit: commit("main"), tree: commit("tree") }),
    report("attempt.progress", "p1", { ...setup, ...said, text: "reads" }),
    report("attempt.progress", "p2", { ...setup, ...said }),
    report("preview.ready", "preview", { address: "http://127.0.0.1:4123/" }),
  );
  await server.tell(
    id,
    report("candidate.offered", `candidate:${candidate}`, {
      ...setup,
      candidate,
      offer: 1,
      commit: commit("setup"),
      tree: commit("setup's"),
    }),
  );
  const view = buildViewSchema.parse((await server.ask("GET", `/v1/builds/${id}`)).body);
  expect(view).toMatchObject({
    main: commit("main"),
    repository: expect.stringContaining(id),
    preview: "http://127.0.0.1:4123/",
    attempts: [{ task: "setup", number: 1, phase: "build", doing: "writes src/list.ts" }],
    candidates: [{ id: candidate, task: "setup", commit: commit("setup") }],
  });
  const queue = mergeQueueViewSchema.parse((await server.ask("GET", `/v1/builds/${id}/merge-queue`)).body);
  expect(queue).toMatchObject({ main: commit("main"), merges: [], candidates: view.candidates });
});

test("the last check of the whole is told with its evidence", async () => {
  const { id } = buildViewSchema.parse((await post({})).body);
  const evidence = [{ id: "add-habit", satisfied: false, text: "nothing is listed" }];
  await server.tell(
    id,
    report("satisfaction.checked", "satisfaction.checked:1", { round: 1, unsatisfied: ["add-habit"], evidence }),
  );
  const { body } = await server.ask("GET", `/v1/builds/${id}`);
  expect(buildViewSchema.parse(body).criteria).toEqual(evidence);
});

test("a build that wants its sandboxes elsewhere, or no agent that there is, is not begun", async () => {
  expect((await post({})).status).toBe(201);
  for (const buildMode of ["local", "modal"]) {
    const message = new RegExp(`SANDBOX_PROVIDER simulated, not ${buildMode}`);
    expect(await post({ buildMode })).toMatchObject({
      status: 409,
      body: { error: { code: "provider_mismatch", message: expect.stringMatching(message) } },
    });
  }
  expect(await post({ buildMode: "hybrid" })).toMatchObject({
    status: 501,
    body: { error: { code: "mode_unavailable", message: expect.stringMatching(/functions.*modal serves it/) } },
  });
  expect((await post({ buildMode: "cloud" })).status).toBe(400);
  expect(await post({ settings: { agent: "../evil" } })).toMatchObject({
    status: 400,
    body: { error: { code: "invalid_request", message: expect.stringContaining("agent") } },
  });
});

test("a build whose agent is not installed is not begun, and says what to do", async () => {
  const agents = await mkdtemp(join(tmpdir(), "agents-"));
  onTestFinished(() => rm(agents, { recursive: true }));
  await using own = await openWorld({ http: { checkAgent: createAgentCheck({}, agents) } });
  const begin = (agent: string) => own.ask("POST", "/v1/builds", { body: { request: "x", settings: { agent } } });
  const refused = async (agent: string) => (await begin(agent)).body.error;
  const install = `npm install --prefix ${agents}/claude-code @anthropic-ai/claude-code`;
  expect(await refused("claude-code")).toMatchObject({
    code: "component_missing",
    message: expect.stringContaining(install),
  });
  expect(await refused("acp:emacs")).toMatchObject({
    code: "unknown_agent",
    message: expect.stringContaining("acp:codex"),
  });
  await mkdir(join(agents, "codex"));
  expect(await refused("acp:codex")).toMatchObject({
    code: "component_missing",
    message: expect.stringContaining("slipway down"),
  });
  await mkdir(join(agents, "ours"));
  await writeFile(join(agents, "ours", "agent.json"), "{}");
  expect(await refused("acp:ours")).toMatchObject({
    code: "invalid_settings",
    message: expect.stringContaining("ours/agent.json: command"),
  });
  expect((await own.ask("GET", "/v1/builds")).body.builds).toEqual([]);
  expect((await begin("builtin")).status).toBe(201);
});

test("there is no merge queue of a build that is not there", async () => {
  const { status, body } = await server.ask("GET", `/v1/builds/${newId("bld")}/merge-queue`);
  expect({ status, body }).toMatchObject({ status: 404, body: { error: { code: "build_not_found" } } });
});
