import { buffer } from "node:stream/consumers";
import { type CheckOf, type Intent, type KeptCheck, newId, type Surface } from "@slipway/contract";
import { type GateWork, lockIntent, type WorkingBuild } from "@slipway/engine";
import { type OwnedSandbox, projectPath, run } from "@slipway/sandbox";
import { task } from "../../testing/plans.ts";
import type { SandboxesPart } from "../../testing/world/sandboxes.ts";
import type { StorePart } from "../../testing/world/store.ts";
import type { RepositoryPart } from "../repository/testing.ts";
import { createGates, type GateParts } from "./gates.ts";

/** Checks before it is known what they prove. */
export type Unnamed = KeptCheck extends infer C ? (C extends KeptCheck ? Omit<C, "proves"> : never) : never;

interface Demanded {
  readonly tasks: readonly string[];
  readonly checks: readonly Unnamed[];
}

export type Files = Readonly<Record<string, string>>;

/** Gates on the build's repository. */
export async function openGates(
  _: object,
  { provider, build, repository, repositories, store, create, lead, apply, main, sandbox, offer }: Below,
) {
  const parts: GateParts = {
    now: Date.now,
    store,
    provider,
    repositories,
    workspaces: {
      async open(_, commit, { labels = {}, tools = [], signal }) {
        const opened = await provider.create({ ...life, labels, tools }, signal && { signal });
        await bringIn(opened, await buffer(repository.files(commit)));
        return opened;
      },
    },
  };
  const gates = createGates(parts);
  const newBuild = async (id = newId("bld")) => {
    const made = await create({ id });
    await lead(made);
    return made;
  };
  await newBuild(build.id);
  let runs = 0;
  const work = (gate: string, commit: string, more: Partial<GateWork> = {}): GateWork => ({
    type: "gate-run",
    run: ++runs,
    gate,
    candidate: newId("cnd"),
    task: "own",
    base: null,
    commit,
    tree: commit,
    ahead: [],
    ...more,
  });
  return {
    parts,
    gates,
    work,
    /** A commit on top of main, or of another; a file that is null is removed. */
    async candidate(changes: Readonly<Record<string, string | null>>, parent = main): Promise<string> {
      return (await offer(await sandbox.commit({ files: changes, parents: [parent] }))).commit;
    },
    /** Another build on the same main: each criterion has its checks, and is served by the tasks that are named. */
    async demand(demands: Readonly<Record<string, Demanded>>): Promise<WorkingBuild> {
      const made = await newBuild();
      await apply(made, { records: await demandRecords(made, demands) });
      return made;
    },
    judge: (gate: string, commit: string, more: Partial<GateWork> = {}, of = build) =>
      gates.run(of, work(gate, commit, more), new AbortController().signal),
  };
}

type Below = SandboxesPart & RepositoryPart & StorePart;

const life = { memoryMb: 512, idleMs: null, onEnd: "destroy" } as const;

async function bringIn(sandbox: OwnedSandbox, tar: Buffer): Promise<void> {
  await sandbox.files.mkdir(projectPath);
  const { exitCode, stderr } = await run(sandbox, ["tar", "-x", "-C", projectPath], { input: tar });
  if (exitCode !== 0) throw new Error(stderr);
}

/** An intent has more than a test asks for: a task that is never merged serves the rest. */
async function demandRecords({ id: build, request }: WorkingBuild, demands: Readonly<Record<string, Demanded>>) {
  const checks: readonly Unnamed[] = [get("/", 200)];
  const rest = Object.fromEntries(
    Array.from({ length: 5 }, (_, index) => [`rest-${index}`, { tasks: ["never"], checks }]),
  );
  const workflows = ["first-visit", "second-visit"].map((id) => ({
    id,
    title: id,
    steps: ["Look"],
    success: "It is there.",
    walk: ["home", "home"],
  }));
  const all: Readonly<Record<string, Demanded>> = { ...demands, ...rest };
  const intent: Intent = {
    request,
    appType: "a shop",
    character: "plain",
    coreValue: "to know what to buy",
    antiPatterns: ["blank"],
    identity: { mood: "calm", colours: ["green"], typography: "plain", layout: "one column" },
    criteria: Object.keys(all).map((id) => ({ id, kind: "functional", statement: `What ${id} says is true.` })),
    workflows,
    surface,
  };
  const locked = await lockIntent({ status: "open", intent }, Date.now());
  const tasks = new Set(Object.values(all).flatMap((demanded) => demanded.tasks));
  const checkedIds = [...Object.entries(all), ...workflows.map(({ id }) => [id, { tasks: [], checks }] as const)];
  return {
    intents: [{ build, hash: locked.hash, intent: JSON.parse(JSON.stringify({ locked, start: { mode: "new" } })) }],
    checks: checkedIds.map(([id, demanded]) => ({
      build,
      criterion: id,
      intentHash: locked.hash,
      check: demanded.checks.map((check) => ({ ...check, proves: id })),
    })),
    plans: [
      {
        build,
        round: 1,
        intentHash: locked.hash,
        tasks: [...tasks].map((id) =>
          task(id, [], { criteria: Object.keys(all).filter((criterion) => all[criterion]?.tasks.includes(id)) }),
        ),
      },
    ],
  };
}

type Expectation = CheckOf<"http">["exchanges"][number]["expect"];

/** A check as they were before there were surfaces: it asks for one path. */
export function get(path: string, status: number, expect: Partial<Expectation> = {}): Unnamed {
  const exchange = { method: "GET" as const, path, body: null };
  return { type: "http", exchanges: [{ ...exchange, expect: { status, bodyContains: [], bodyLacks: [], ...expect } }] };
}

/** Of `app`. */
export const surface: Surface = {
  pages: [
    { id: "home", path: "/", purpose: "The list" },
    { id: "elsewhere", path: "/{page}", purpose: "Any other page" },
  ],
  controls: [
    { id: "title", page: "home", role: "heading", name: "Shop" },
    { id: "entry", page: "home", role: "textbox", name: "Item" },
    { id: "add", page: "home", role: "button", name: "Add" },
  ],
  messages: [{ id: "count", text: "{count} items", one: "{count} item", when: "Something is on the list" }],
  routes: [
    {
      id: "put",
      method: "POST",
      path: "/api/items",
      purpose: "Put an item on the list",
      request: [{ field: "name", type: "text" }],
      response: [{ field: "[]", type: "text" }],
    },
    {
      id: "all",
      method: "GET",
      path: "/api/items",
      purpose: "The list",
      request: [],
      response: [{ field: "[]", type: "text" }],
    },
  ],
};

/** An app without dependencies. */
export const app: Files = {
  "package.json": JSON.stringify({
    name: "shop",
    type: "module",
    scripts: { build: "node --check server.js", test: "node --test server.test.js", start: "node server.js" },
  }),
  "server.js": `import { createServer } from "node:http";
import { items } from "./items.js";
import { page } from "./page.js";
createServer(async (request, response) => {
  if (request.url === "/api/items" && request.method === "POST") {
    let body = "";
    for await (const chunk of request) body += chunk;
    items.push(JSON.parse(body).name);
    response.writeHead(201).end(JSON.stringify(items));
  } else if (request.url === "/api/items") response.end(JSON.stringify(items));
  else response.writeHead(200, { "content-type": "text/html" }).end(page);
}).listen(Number(process.env.PORT), "127.0.0.1");
`,
  "items.js": "export const items = [];\n",
  "page.js": `export const page = \`<!doctype html><html lang="en"><title>Shop</title><h1>Shop</h1>
<form><label>Item <input name="name"></label><button>Add</button></form><ul></ul>
<script type="module">
  const list = document.querySelector("ul");
  const show = (items) => list.replaceChildren(...items.map((name) => Object.assign(document.createElement("li"), { textContent: name })));
  const load = async () => show(await (await fetch("/api/items")).json());
  document.querySelector("form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const body = JSON.stringify({ name: new FormData(event.target).get("name") });
    await fetch("/api/items", { method: "POST", body });
    await load();
  });
  await load();
</script></html>\`;
`,
  "server.test.js": `import assert from "node:assert/strict";
import test from "node:test";
import { items } from "./items.js";
test("nothing is in the shop at first", () => assert.deepEqual(items, []));
test("what is put in is there", () => {
  items.push("milk");
  assert.deepEqual(items, ["milk"]);
});
`,
};
