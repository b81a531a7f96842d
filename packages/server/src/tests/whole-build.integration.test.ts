import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { ScriptedProgram, ScriptedRequest, Turn } from "@slipway/gateway/scripted";
import { expect, test, vi } from "vitest";
import { localUser } from "../faces/principal.ts";
import { part, scriptedApp } from "../testing/scripted-app.ts";
import { openWorld } from "../testing/world.ts";

/**
 * The lead of `cart` hands out a part, and makes another one of what its worker has noted. Of what `list` is for, which `cart`
 * waits for, the app has all from the first.
 */
const app = scriptedApp([
  { id: "list", criteria: ["keep-items"], build: () => [] },
  {
    id: "cart",
    dependencies: ["list"],
    build: () => [{ tool: "add_tasks", input: { tasks: [{ title: "price" }] } }, ...part("cart")],
  },
  { id: "pay" },
]);

const withTeam: ScriptedProgram = (request) => {
  const prompt = request.lastPrompt.trim();
  if (/^Your task: price(\n|$)/.test(prompt)) return workerTurn(request);
  return prompt.startsWith("The workers are done") ? resultsTurn(request) : app(request);
};

function workerTurn({ step, tools }: ScriptedRequest): Turn {
  if (step > 0 || tools.includes("add_tasks")) return { text: "It is done." };
  return { actions: [...part("price"), { tool: "write_note", input: { text: "it costs 5" } }] };
}

function resultsTurn({ step, results }: ScriptedRequest): Turn {
  if (step === 0) return { actions: [{ tool: "read_notes", input: {} }] };
  const notes = results.find(({ tool }) => tool === "read_notes")?.text;
  return notes === undefined ? { text: "It is done." } : { actions: part("notes", notes) };
}

test("a build of four tasks, with a lead and workers, and one that is there already, ends with all of their work on main, the criteria seen, a preview, and nothing left", async () => {
  await using builds = await openWorld({ sandboxes: "local", server: { program: withTeam } });
  const secret = { host: "api.example.com", header: "x-key", value: "t0p-5ecret" };
  const build = await builds.start({ settings: { workers: 2 }, secrets: [secret] });
  const view = await builds.ended(build);
  const events = await builds.events(build);
  const told = events.map(({ type, data }) => `${type} ${JSON.stringify(data).slice(0, 200)}`).slice(-12);
  expect(view.status, [...told, ...builds.warnings].join("\n")).toBe("succeeded");
  expect(await builds.file(build, "parts/cart.js")).toBe('export default "cart";\n');
  expect(await builds.file(build, "parts/pay.js")).toBe('export default "pay";\n');
  expect(await builds.file(build, "parts/price.js")).toBe('export default "price";\n');
  expect(await builds.file(build, "parts/notes.js")).toMatch(/^export default "worker-[12]: it costs 5";\n$/);
  expect(view.criteria.every(({ satisfied }) => satisfied)).toBe(true);
  const list = view.taskList.find(({ id }) => id === "list");
  expect(list).toMatchObject({ status: "satisfied", reason: "already on main", attempts: 1 });
  await vi.waitFor(async () => expect(await builds.shown(build, "price")).toBe("price"));
  const ran = events.filter(({ type }) => type === "sandbox.changed").map(({ data }) => JSON.stringify(data));
  for (const purpose of ["attempt", "gate", "checker", "preview"])
    expect(
      ran.some((data) => data.includes(`"purpose":"${purpose}"`)),
      purpose,
    ).toBe(true);
  const own = join(builds.directory, "state", "builds", build);
  // What is left of a build is removed after its end is told, its secrets last of all.
  await vi.waitFor(async () => expect(await readdir(own)).not.toContain("secrets.json"), { timeout: 60_000 });
  const left = await builds.provider.list();
  expect(left.map(({ labels }) => labels["purpose"])).toEqual(["preview"]);
  expect(left[0]?.network.secrets).toEqual([{ host: secret.host, header: secret.header }]);
  expect(JSON.stringify([view, events, builds.warnings])).not.toContain(secret.value);
  expect((await builds.server.face.get(localUser, build)).money.reservedMicroUsd).toBe(0);
}, 600_000);
