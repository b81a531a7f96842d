import { chmod, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { newId } from "@slipway/contract";
import type { GateWork, WorkingBuild } from "@slipway/engine";
import { type OwnedSandbox, projectPath, run, type SandboxProvider } from "@slipway/sandbox";
import { createLocalProvider } from "@slipway/sandbox/local";
import { openSite } from "../repository/testing.ts";
import { createGates, type GateParts, type Gates } from "./gates.ts";

export interface GateSite extends AsyncDisposable {
  readonly provider: SandboxProvider;
  readonly build: WorkingBuild;
  readonly parts: GateParts;
  readonly gates: Gates;
  readonly main: string;
  /** A commit on top of main; a file that is null is removed. */
  candidate(files: Readonly<Record<string, string | null>>): Promise<string>;
  work(gate: string, commit: string, more?: Partial<GateWork>): GateWork;
  judge(gate: string, commit: string, more?: Partial<GateWork>): ReturnType<Gates["run"]>;
}

export type Files = Readonly<Record<string, string>>;

/** A build whose main has these files, and gates on real sandboxes. */
export async function openGateSite(files: Files, tools: Readonly<Record<string, string>> = {}): Promise<GateSite> {
  await using stack = new AsyncDisposableStack();
  const scratch = await mkdtemp("/var/tmp/slipway-gates-");
  stack.defer(() => rm(scratch, { recursive: true, force: true }));
  // As root, sandboxes run as another user, who must be able to pass through.
  await chmod(scratch, 0o711);
  const provider = stack.use(
    createLocalProvider({ stateDir: join(scratch, "state"), environment: process.env, tools }),
  );
  const { repository, main, sandbox, offer } = stack.use(await openSite(files));
  const build: WorkingBuild = { id: newId("bld"), account: "ada", project: "shop", mode: "new", request: "A shop" };
  const parts: GateParts = {
    provider,
    repositories: { of: async () => repository },
    workspaces: {
      open: async (_, commit, { labels = {}, signal }) => {
        const opened = await provider.create({ labels, idleMs: null }, signal && { signal });
        await bringIn(opened, await buffer(repository.files(commit)));
        return opened;
      },
    },
  };
  const gates = createGates(parts);
  let runs = 0;
  const work: GateSite["work"] = (gate, commit, more) => ({
    ...{
      type: "gate-run",
      run: ++runs,
      gate,
      candidate: newId("cnd"),
      task: "first",
      base: null,
      commit,
      tree: commit,
    },
    ...more,
  });
  const held = stack.move();
  return {
    ...{ provider, build, parts, gates, main, work },
    async candidate(changes) {
      return (await offer(await sandbox.commit({ files: changes, parents: [main] }))).commit;
    },
    judge: (gate, commit, more) => gates.run(build, work(gate, commit, more), new AbortController().signal),
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  };
}

async function bringIn(sandbox: OwnedSandbox, tar: Buffer): Promise<void> {
  await sandbox.files.mkdir(projectPath);
  const { exitCode, stderr } = await run(sandbox, ["tar", "-x", "-C", projectPath], { input: tar });
  if (exitCode !== 0) throw new Error(stderr);
}

/** An app without dependencies: its server keeps items in a file. */
export const app: Files = {
  "package.json": JSON.stringify({
    name: "shop",
    type: "module",
    scripts: { build: "node --check server.js", test: "node --test server.test.js", start: "node server.js" },
  }),
  "server.js": `import { createServer } from "node:http";
import { items } from "./items.js";
const page = '<!doctype html><title>Shop</title><h1>Shop</h1>';
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
