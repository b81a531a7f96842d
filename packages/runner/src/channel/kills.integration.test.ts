import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { endAs, type NumberedEvent } from "@slipway/contract";
import { expect, test, vi } from "vitest";
import { startTestHost } from "./testing/host.ts";
import { createTestPlace, type TestPlace } from "./testing/place.ts";

const kills = 20;
const latestKillMs = 200;

test.concurrent(`a host killed at ${kills} random moments gets every event once and in order`, async () => {
  await using site = openSite();
  const token = await tokenOf(site.place);
  let host = await site.startHost();
  const runner = await site.startRunner(token);
  for (let round = 0; round < kills; round++) {
    await delay(pseudoRandom(`host ${round}`) * latestKillMs);
    await host.kill();
    host = await site.startHost();
  }
  const count = await runner.stop();
  await host.kill();
  expectCounted(await storedEvents(site.place), count);
}, 600_000);

test.concurrent(`a runner killed at ${kills} random moments says everything once and in order, and hears nothing twice`, async () => {
  await using site = openSite();
  const { place, startRunner } = site;
  const handled = () => readFileSync(join(place.spool, "handled"), "utf8").split("\n").filter(Boolean).map(Number);
  const host = await startTestHost(place.directory, place.run);
  let runner = await startRunner(host.run.token);
  for (let round = 0; round < kills; round++) {
    await host.run.send({ type: "message", text: String(round) });
    await delay(pseudoRandom(`runner ${round}`) * latestKillMs);
    await runner.kill();
    runner = await startRunner(host.run.token);
  }
  await host.run.send({ type: "interrupt" });
  await vi.waitFor(() => expect(handled().at(-1)).toBe(kills + 1));
  const count = await runner.stop();
  expectCounted(await host.stored(), count);
  expect(handled()).toEqual([...new Set(handled())].sort((a, b) => a - b));
  expect(await host.run.ended).toEqual(endAs("completed", "done"));
  await host[Symbol.asyncDispose]();
}, 600_000);

function expectCounted(events: readonly NumberedEvent[], count: number): void {
  expect(events.map(({ sequence }) => sequence)).toEqual(Array.from({ length: count + 1 }, (_, i) => i + 1));
  const said = events.slice(0, -1).map(({ event }) => (event.type === "note" ? event.text : event.type));
  expect(said).toEqual(Array.from({ length: count }, (_, i) => String(i)));
  expect(events.at(-1)?.event.type).toBe("ended");
  expect(count).toBeGreaterThan(kills);
}

async function tokenOf({ directory, run }: TestPlace): Promise<string> {
  await using host = await startTestHost(directory, run);
  return host.run.token;
}

async function storedEvents({ directory, run }: TestPlace): Promise<NumberedEvent[]> {
  await using host = await startTestHost(directory, run);
  return await host.stored();
}

/** Fixed, so that a failure can be had again. */
function pseudoRandom(seed: string): number {
  return createHash("sha256").update(seed).digest().readUInt32LE() / 2 ** 32;
}

interface Program {
  kill(): Promise<void>;
  /** Lets it come to its end and answers the number that it prints then. */
  stop(): Promise<number>;
}

/** A place with programs that are killed before it goes. */
function openSite() {
  const place = createTestPlace();
  const programs: Program[] = [];
  return {
    place,
    startHost: () => start(new URL("host-fixture.ts", import.meta.url), [place.directory, place.run], programs),
    startRunner: (token: string) =>
      start(new URL("runner-fixture.ts", import.meta.url), [place.socketPath, token, place.spool], programs),
    async [Symbol.asyncDispose]() {
      for (const program of programs) await program.kill();
      place[Symbol.dispose]();
    },
  };
}

async function start(program: URL, args: readonly string[], programs: Program[]): Promise<Program> {
  const child = spawn(process.execPath, [fileURLToPath(program), ...args], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout });
  const started: Program = {
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGKILL");
      await once(child, "exit");
    },
    async stop() {
      child.stdin.write("stop\n");
      const line = await nextLine(lines, child);
      await once(child, "exit");
      return Number(line);
    },
  };
  programs.push(started);
  expect(await nextLine(lines, child)).toBe("up");
  return started;
}

async function nextLine(lines: Interface, child: ChildProcess): Promise<string> {
  const ended = once(child, "exit").then(([code]) => Promise.reject(new Error(`it ended by itself with ${code}`)));
  const [line] = (await Promise.race([once(lines, "line"), ended])) as [string];
  ended.catch(() => undefined);
  return line;
}
