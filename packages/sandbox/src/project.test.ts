import { createServer } from "node:http";
import type { Duplex } from "node:stream";
import { describe, expect, test } from "vitest";
import { buildProject, cloneRepo, installDependencies, startDevServer, testProject } from "./project.ts";
import { createFakeProvider, type FakeProcess, type FakeProgram } from "./testing/fake-provider.ts";

/** A package manager that notes what it is asked; `dev` serves, `test` fails. */
const npm: FakeProgram = async (process) => {
  process.stdout.write(`${process.cwd}: ${process.argv.join(" ")}`);
  if (process.argv[2] === "dev") return await serve(process);
  return process.argv[2] === "test" ? 1 : 0;
};

async function serve(process: FakeProcess): Promise<number> {
  const server = createServer((_request, response) => response.writeHead(500).end("not found"));
  process.listen(Number(process.env.PORT), (connection) => server.emit("connection", connection));
  await new Promise((resolve) => process.signal.addEventListener("abort", resolve));
  return 0;
}

async function project(manifest: object, programs: Record<string, FakeProgram> = { npm, git: npm }) {
  const sandbox = await createFakeProvider(programs).create({});
  await sandbox.files.write("/workspace/project/package.json", JSON.stringify(manifest));
  return sandbox.restricted();
}

test("a repository is cloned into the project's directory", async () => {
  const sandbox = await project({});
  const { stdout, exitCode } = await cloneRepo(sandbox, "https://example.com/r.git", { ref: "main", depth: 1 });
  expect(exitCode).toBe(0);
  expect(stdout).toContain("--branch main --depth 1 -- https://example.com/r.git /workspace/project");
  await expect(cloneRepo(sandbox, "--upload-pack=evil")).rejects.toMatchObject({ code: "invalid_request" });
});

test("install, build and test run in the project, and a failure is an answer", async () => {
  const sandbox = await project({ scripts: { build: "tsc", test: "vitest" } });
  expect((await installDependencies(sandbox)).map(({ stdout }) => stdout)).toEqual(["/workspace/project: npm install"]);
  expect(await buildProject(sandbox)).toMatchObject({ exitCode: 0, stdout: "/workspace/project: npm run build" });
  expect(await testProject(sandbox)).toMatchObject({ exitCode: 1 });
  expect(await buildProject(await project({}))).toBeNull();
});

test("a dev server is ready when its port answers, whatever it answers", async () => {
  const sandbox = await project({ scripts: { dev: "vite" } });
  const server = await startDevServer(sandbox);
  expect(server.port).toBe(5173);
  expect(await sandbox.execs()).toMatchObject([{ id: server.exec.id, background: true, exit: null }]);
  await server.exec.kill();
});

test("a dev server that ends says its last words", async () => {
  const broken: FakeProgram = async ({ stderr }) => {
    stderr.write("no such module");
    return 1;
  };
  const sandbox = await project({ scripts: { dev: "vite" } }, { npm: broken });
  await expect(startDevServer(sandbox)).rejects.toMatchObject({
    code: "exec_ended",
    message: expect.stringContaining("no such module"),
  });
});

const nobody: FakeProgram = async ({ signal }) => {
  await new Promise((resolve) => signal.addEventListener("abort", resolve));
  return 0;
};

test("a dev server that never listens is ended", async () => {
  const sandbox = await project({ scripts: { dev: "vite" } }, { npm: nobody });
  await expect(startDevServer(sandbox, { clock: { sleep: async () => {} } })).rejects.toMatchObject({
    code: "connection_refused",
    message: expect.stringContaining("did not answer on port 5173 within 60000 ms."),
  });
  expect((await sandbox.execs())[0]?.exit).toMatchObject({ reason: "killed" });
});

describe("a dev server that takes a connection and says nothing", () => {
  /** Tells of the first connection, and keeps it. */
  const mute = () => {
    const connected = Promise.withResolvers<Duplex>();
    const npm: FakeProgram = async (process) => {
      process.listen(Number(process.env.PORT), connected.resolve);
      return await nobody(process);
    };
    return { npm, connected: connected.promise };
  };

  test("is ended at its time", async () => {
    const { npm, connected } = mute();
    const sandbox = await project({ scripts: { dev: "vite" } }, { npm });
    const clock = { sleep: async (ms: number) => void (ms === 500 && (await connected)) };
    await expect(startDevServer(sandbox, { clock, readyMs: 500 })).rejects.toMatchObject({
      code: "connection_refused",
      message: expect.stringContaining("did not answer on port 5173 within 500 ms."),
    });
    expect((await sandbox.execs())[0]?.exit).toMatchObject({ reason: "killed" });
    expect((await connected).destroyed).toBe(true);
  });

  test("is ended when whoever waits gives up", async () => {
    const { npm, connected } = mute();
    const sandbox = await project({ scripts: { dev: "vite" } }, { npm });
    const controller = new AbortController();
    const starting = startDevServer(sandbox, { signal: controller.signal });
    void connected.then(() => controller.abort());
    await expect(starting).rejects.toMatchObject({ code: "aborted" });
    expect((await sandbox.execs())[0]?.exit).toMatchObject({ reason: "killed" });
  });
});

test("a project without a dev server is told so", async () => {
  await expect(startDevServer(await project({}))).rejects.toMatchObject({ code: "exec_not_started" });
});
