import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newId } from "@slipway/contract";
import { expect, onTestFinished, test } from "vitest";
import { openLedger } from "./index.ts";
import { ask, post } from "./testing/gateway.ts";
import { speak, speakThen, startTestUpstream } from "./testing/upstream.ts";

const agents = 20;

test("a gateway that is killed while agents stream bills each request once, and its successor knows their tokens", async () => {
  const directory = mkdtempSync(join(tmpdir(), "slipway-restart-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const socketPath = join(directory, "gateway.sock");
  const run = newId("run");
  await using upstream = await startTestUpstream();
  const ask20 = (token: string) =>
    Promise.all(
      Array.from({ length: agents }, () =>
        post("http://gateway/v1/messages", ask(), { token, socketPath }).catch(() => ({ status: 0, broken: true })),
      ),
    );

  const first = await startGateway(directory, upstream.baseUrl, run);
  const speaking = Promise.withResolvers<void>();
  let spoken = 0;
  upstream.behave(speakThen(() => void (++spoken === agents && speaking.resolve())));
  const streams = ask20(first.token);
  await speaking.promise;
  first.process.kill("SIGKILL");
  await once(first.process, "exit");
  expect((await streams).every(({ broken }) => broken)).toBe(true);

  const second = await startGateway(directory, upstream.baseUrl, run);
  upstream.behave(speak());
  expect((await ask20(first.token)).map(({ status }) => status)).toEqual(Array(agents).fill(200));
  second.process.kill("SIGKILL");
  await once(second.process, "exit");

  const entries = readFileSync(join(directory, "ledger", "ledger.jsonl"), "utf8")
    .trim()
    .split("\n");
  const settled = entries.map((line) => JSON.parse(line)).filter(({ type }) => type === "settle");
  expect(settled).toHaveLength(2 * agents);
  expect(new Set(settled.map(({ request }) => request)).size).toBe(2 * agents);
  expect(settled.filter(({ end }) => end === "lost")).toHaveLength(agents);
  await using ledger = await openLedger(join(directory, "ledger"));
  const lost = settled.filter(({ end }) => end === "lost").reduce((sum, { microUsd }) => sum + microUsd, 0);
  expect(await ledger.balance(run)).toMatchObject({ spentMicroUsd: lost + agents * 759, reservedMicroUsd: 0 });
});

async function startGateway(...argv: string[]): Promise<{ process: ChildProcess; token: string }> {
  const program = new URL("restart-fixture.ts", import.meta.url).pathname;
  const child = spawn(process.execPath, [program, ...argv], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  child.stdout.setEncoding("utf8");
  const [text] = (await once(child.stdout, "data")) as [string];
  return { process: child, token: text.trim() };
}
