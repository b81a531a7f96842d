import { expect, it } from "vitest";
import { attemptAt, openSite } from "./testing.ts";

it("an attempt that fills its disk has failed, and says so; what is left of it is not gone on with", async () => {
  const fill = "for i in $(seq 1000); do dd if=/dev/zero of=$i.bin bs=1M count=1 status=none; sleep 0.02; done";
  await using site = await openSite({
    program: ({ step }) => (step === 0 ? { actions: [{ run: fill }] } : { text: "Done." }),
    sandbox: { diskMb: 64 },
  });
  const { attempts, build, provider } = site;
  await attempts.carryOut(build, [attemptAt("list")]);
  const { outcome } = await site.reported("attempt.ended");
  expect(outcome).toEqual({
    type: "failed",
    error: "The sandbox was ended: its disk was full. Leave less on it.",
  });
  expect(await provider.list()).toEqual([]);
}, 240_000);
