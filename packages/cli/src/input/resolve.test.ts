import { newId, type SandboxId } from "@slipway/contract";
import { expect, test } from "vitest";
import { runCli } from "../testing/run-cli.ts";
import { addSandbox, createStubProvider } from "../testing/stub-provider.ts";
import { findExecId } from "./resolve.ts";

test("an id, its unique beginning, with and without prefix, and a name all mean the same sandbox", async () => {
  const provider = createStubProvider();
  const { id } = addSandbox(provider, { labels: { name: "web" } });
  addSandbox(provider, {}, { id: newId("sbx", 1) });
  for (const text of [id, id.slice(0, 15), id.slice(4, 15), "web"]) {
    const { code, stdout } = await runCli(["sandbox", "info", text, "--json"], { provider });
    expect(code).toBe(0);
    expect(JSON.parse(stdout).id).toBe(id);
  }
});

test("a beginning that fits two sandboxes is refused and shows them", async () => {
  const provider = createStubProvider();
  const [a, b] = [addSandbox(provider), addSandbox(provider, { labels: { name: "web" } })];
  const { code, stderr } = await runCli(["sandbox", "info", "sbx_"], { provider });
  expect(code).toBe(125);
  expect(stderr).toContain(`matches more than one sandbox: ${a.id}, ${b.id} (web)`);
});

test("an end of an id that has 3 characters is enough, and a shorter one says so", async () => {
  const provider = createStubProvider();
  const { id } = addSandbox(provider, {}, { id: "sbx_00000000000000000abc" as SandboxId });
  addSandbox(provider, {}, { id: "sbx_00000000000000000abd" as SandboxId });
  const { stdout } = await runCli(["sandbox", "info", "abc", "--json"], { provider });
  expect(JSON.parse(stdout).id).toBe(id);
  const { code, stderr } = await runCli(["sandbox", "info", "bc"], { provider });
  expect(code).toBe(125);
  expect(stderr).toContain("The end of an ID needs 3 characters");
});

test("a name goes before a beginning of an id", async () => {
  const provider = createStubProvider();
  const other = addSandbox(provider);
  const named = addSandbox(provider, { labels: { name: other.id.slice(4, 8) } });
  const { stdout } = await runCli(["sandbox", "info", other.id.slice(4, 8), "--json"], { provider });
  expect(JSON.parse(stdout).id).toBe(named.id);
});

test.each(["nope", "sbx_zz", "exc_00000000000000000000"])("%s, which fits nothing, is not found", async (text) => {
  const provider = createStubProvider();
  addSandbox(provider);
  const { code, stderr } = await runCli(["sandbox", "info", text], { provider });
  expect(code).toBe(125);
  expect(stderr).toContain("code: sandbox_not_found");
});

test("a taken name is refused at create, unless a retry is meant", async () => {
  const provider = createStubProvider();
  const { id } = addSandbox(provider, { labels: { name: "web" } });
  const refused = await runCli(["sandbox", "create", "--name", "web"], { provider });
  expect(refused.code).toBe(125);
  expect(refused.stderr).toContain(id);
  const retried = await runCli(["sandbox", "create", "--name", "web", "--idempotency-key", "k"], { provider });
  expect(retried.code).toBe(0);
});

test("an exec is found by the beginning of its id", async () => {
  const id = newId("exc");
  const execs = async () => [{ id, argv: ["ls"], startedAt: 0, background: false, exit: null }];
  const sandbox = { id: newId("sbx"), execs } as unknown as Parameters<typeof findExecId>[0];
  const { signal } = new AbortController();
  expect(await findExecId(sandbox, id.slice(0, 10), signal)).toBe(id);
  await expect(findExecId(sandbox, "zz", signal)).rejects.toMatchObject({ code: "exec_not_found" });
});
