import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { OwnedSandbox } from "../provider.ts";
import { describeAbort } from "./abort.ts";
import { describeBadInput } from "./bad-input.ts";
import { describeChannel } from "./channel.ts";
import { type Conformance, small, uniqueName } from "./context.ts";
import { describeEvents } from "./events.ts";
import { describeExec } from "./exec.ts";
import { describeEnd } from "./exec-end.ts";
import { describeOutput } from "./exec-output.ts";
import { describeFiles } from "./files.ts";
import { describeHeld } from "./files-held.ts";
import { describeTrees } from "./files-trees.ts";
import { describeLifecycle } from "./lifecycle.ts";
import { describePorts } from "./ports.ts";
import { describeRestricted } from "./restricted.ts";
import { describeRetries } from "./retries.ts";
import { describeSnapshots } from "./snapshots.ts";
import { describeSurroundings } from "./surroundings.ts";
import { describeSurvival } from "./survival.ts";
import type { ConformanceSubject, ConformanceTarget } from "./target.ts";
import { describeTime } from "./time.ts";
import { describeTools } from "./tools.ts";

/** What every provider has to pass. Its test calls this once; docs/guides/add-a-provider.md shows how. */
export function describeProvider(name: string, subject: ConformanceSubject): void {
  describe(`${name} conforms to the port`, () => {
    let target: ConformanceTarget | undefined;
    let shared: OwnedSandbox | undefined;
    const c: Conformance = {
      capabilities: subject.capabilities,
      subject,
      get target() {
        return present(target);
      },
      get provider() {
        return present(target).provider;
      },
      get shared() {
        return present(shared);
      },
      create: async (request = {}) => await present(target).provider.create({ ...small, ...request }),
      place: () => `/workspace/${uniqueName()}`,
    };

    beforeAll(async () => {
      target = await subject.setup();
      shared = await c.create({ idleMs: null });
    });
    afterAll(async () => {
      await shared?.destroy();
      await target?.[Symbol.asyncDispose]();
    });

    test("the provider declares the capabilities it is tested for", () => {
      expect(c.provider.capabilities).toEqual(subject.capabilities);
      expect(c.provider.name).not.toBe("");
    });

    for (const group of groups) group(c);

    test("nothing is left when every test is over", async () => {
      expect((await c.provider.list()).map(({ id }) => id)).toEqual([c.shared.id]);
    });
  });
}

const groups = [
  describeExec,
  describeOutput,
  describeEnd,
  describeSurvival,
  describeFiles,
  describeHeld,
  describeTrees,
  describeLifecycle,
  describeRetries,
  describeTime,
  describeSnapshots,
  describeEvents,
  describePorts,
  describeChannel,
  describeTools,
  describeSurroundings,
  describeRestricted,
  describeAbort,
  describeBadInput,
];

function present<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("only while the suite's tests run");
  return value;
}
