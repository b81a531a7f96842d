import { chmodSync, mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { createTestHost } from "../launch/launch-fixture.ts";
import { inspectHost } from "./doctor.ts";

beforeAll(async () => {
  await using _ = await createTestHost();
});

const environment = { PATH: "/usr/local/bin:/usr/bin:/bin" };

test("a host that runs the tests can run sandboxes, and keeps nothing of the trial", async () => {
  const place = mkdtempSync(join(tmpdir(), "slipway-doctor-"));
  chmodSync(place, 0o711);
  const findings = await inspectHost({ stateDir: join(place, "state"), environment });
  expect(findings.filter(({ status }) => status === "fail")).toEqual([]);
  expect(findings.map(({ name }) => name)).toEqual(
    expect.arrayContaining(["kernel", "trial sandbox", "memory limit", "sleep"]),
  );
  expect(readdirSync(place)).toEqual([]);
});

test("what fails comes with what to do", async () => {
  const findings = await inspectHost({ stateDir: `/tmp/${"long".repeat(40)}`, environment: { PATH: "/nowhere" } });
  const failed = findings.filter(({ status }) => status === "fail");
  expect(failed.map(({ name }) => name)).toEqual(expect.arrayContaining(["bubblewrap", "state directory"]));
  for (const { action } of failed) expect(action).toMatch(/\w/);
});

test("a disk with less free than sandboxes leave fails", async () => {
  const findings = await inspectHost({ stateDir: tmpdir(), environment: { PATH: "/nowhere" }, minFreeMb: 2 ** 33 });
  expect(findings.find(({ name }) => name === "state directory")).toMatchObject({
    status: "fail",
    action: expect.stringContaining("SLIPWAY_MIN_FREE_MB"),
  });
});
