import type { ScriptedProgram } from "@slipway/gateway/scripted";
import { expect, it, vi } from "vitest";
import { attemptAt, openSite } from "./testing.ts";

vi.setConfig({ testTimeout: 180_000 });

/** Does these things one after another when it is set to its task, and says of criteria what is wanted. */
function agent(actions: NonNullable<Awaited<ReturnType<ScriptedProgram>>["actions"]>): ScriptedProgram {
  return ({ lastPrompt, step }) => {
    if (/Go through the criteria/.test(lastPrompt)) {
      const input = { criterion: "add-item", satisfied: true, evidence: "It is there." };
      return step === 0 ? { actions: [{ tool: "state_criterion", input }] } : { text: "Done." };
    }
    const action = actions[step];
    return action === undefined ? { text: "Done." } : { actions: [action] };
  };
}

it("an attempt's work comes into the build's repository as a candidate, and nothing is left when the build is closed", async () => {
  await using site = await openSite({ program: agent([{ write: "list.txt", content: "socks\n" }]) });
  const { attempts, build, repository, store, provider } = site;
  const item = attemptAt("list");
  await attempts.carryOut(build, [item]);
  const offered = await site.reported("candidate.offered");
  expect(offered).toMatchObject({ task: "list", attempt: 1, respawn: 0, offer: 1 });
  expect([...(await repository.candidates())]).toEqual([[offered["candidate"], offered["commit"]]]);
  expect((await repository.read(offered["commit"], () => true)).get("list.txt")?.toString()).toBe("socks\n");
  const [main] = await site.reports("main.made");
  expect(main?.["commit"]).toBe(await repository.main());
  expect(await site.reports("attempt.heard")).toHaveLength(1);
  const phases = (await site.reports("attempt.progress")).filter(({ status }) => status === "begun");
  expect(phases.map(({ phase }) => phase)).toEqual(["initialise", "build", "integrate", "test", "intent", "verify"]);
  expect((await store.actions.list(build.id)).some(({ action }) => action === "file_change")).toBe(true);
  expect((await store.ledger.costs(build.id, "task")).find(({ of }) => of === "list")?.spentMicroUsd).toBeGreaterThan(
    0,
  );
  expect(attempts.heardAtMs(build.id, "list", 1)).toBeGreaterThan(0);
  await attempts.close(build, { cancelled: false });
  expect(await provider.list()).toEqual([]);
  expect(await provider.snapshots.list()).toEqual([]);
  expect(site.warnings).toEqual([]);
});
