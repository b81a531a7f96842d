import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { createManualClock, createSimulatedProvider } from "./index.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

function heapBytes(): number {
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

test("20,000 sandboxes with ten files each are held at once, in less than 10 KB each", async () => {
  const clock = createManualClock();
  const provider = createSimulatedProvider({ clock, programs: { true: async () => 0 } });
  const files = Object.fromEntries(
    Array.from({ length: 10 }, (_, i) => [`src/file${i}.ts`, `export const n = ${i};\n`]),
  );
  const before = heapBytes();
  const sandboxes = [];
  for (let i = 0; i < 20_000; i++) {
    const sandbox = await provider.create({ labels: { build: `b${i}` } });
    await sandbox.files.hydrate(files);
    sandboxes.push(sandbox);
  }
  const each = (heapBytes() - before) / sandboxes.length;
  expect(each).toBeLessThan(10_000);
  await clock.advance(30 * 60_000);
  expect(await provider.list({ states: ["sleeping"] })).toHaveLength(20_000);
});

test("forks cost what they change", async () => {
  const provider = createSimulatedProvider();
  const source = await provider.create({});
  for (let i = 0; i < 200; i++) {
    await source.files.hydrate(
      Object.fromEntries(Array.from({ length: 10 }, (_, k) => [`d${i}/f${k}`, "x".repeat(1000)])),
    );
  }
  const before = heapBytes();
  const forks = [];
  for (let i = 0; i < 500; i++) {
    const fork = await source.fork();
    await fork.files.write("d0/f0", `changed ${i}`);
    forks.push(fork);
  }
  expect((heapBytes() - before) / forks.length).toBeLessThan(20_000);
});
