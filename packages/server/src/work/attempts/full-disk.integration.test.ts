import { endAs } from "@slipway/contract";
import type { AttemptWork } from "@slipway/engine";
import { expect, it } from "vitest";
import { attemptAt } from "../../testing/plans.ts";
import { openWorld } from "../../testing/world.ts";

it("an attempt that fills its disk fails with that reason, and the next one does not continue its files", async () => {
  const fill = "for i in $(seq 1000); do dd if=/dev/zero of=$i.bin bs=1M count=1 status=none; sleep 0.02; done";
  await using site = await openWorld({
    sandboxes: "local",
    model: ({ step }) => (step === 0 ? { actions: [{ run: fill }] } : { text: "Done." }),
    attempts: { sandbox: { diskMb: 64 } },
  });
  const { attempts, build, provider } = site;
  await attempts.carryOut(build, [attemptAt("list")]);
  const { end } = await site.reported("attempt.ended");
  expect(end).toEqual(endAs("disk_full", "The sandbox was ended: its disk was full. Leave less on it."));
  expect(await provider.list()).toEqual([]);
}, 240_000);

it("an attempt that finds this machine's disk full is interrupted, and continues later", async () => {
  let [isFull, isMended] = [true, false];
  await using site = await openWorld({
    sandboxes: "local",
    model: ({ lastPrompt, step }) => {
      if (/Go through the criteria/.test(lastPrompt) && !isMended) isFull = true;
      return step === 0 ? { actions: [{ write: "list.txt", content: "socks\n" }] } : { text: "Done." };
    },
    attempts: { isDiskFull: () => isFull },
  });
  const { attempts, build } = site;
  const [first, second, third] = [1, 2, 3].map((number) =>
    attemptAt("list", { number, from: number === 1 ? "main" : "last-attempt" }),
  ) as [AttemptWork, AttemptWork, AttemptWork];
  const end = ({ id }: AttemptWork) => ({ type: "end-attempt", id, task: "list", keepSandbox: true }) as const;
  await attempts.carryOut(build, [first]);
  expect(await site.reported("attempt.ended")).toMatchObject({ end: { reason: "unavailable" } });
  isFull = false;
  await attempts.carryOut(build, [end(first), second]);
  const ended = await site.reported("attempt.ended", ({ attempt }) => attempt === 2);
  expect(ended).toMatchObject({ end: { reason: "unavailable" } });
  expect(await site.reports("candidate.refused")).toEqual([]);
  [isFull, isMended] = [false, true];
  await attempts.carryOut(build, [end(second), third]);
  expect(await site.reported("candidate.offered")).toMatchObject({ attempt: 3, offer: 1 });
}, 240_000);
