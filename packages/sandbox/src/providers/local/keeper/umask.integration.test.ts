import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { setUpLocal } from "../testing.ts";

test("whatever the umask, nobody else writes to what a keeper has made", async () => {
  const umask = process.umask(0);
  onTestFinished(() => void process.umask(umask));
  await using local = setUpLocal();
  await using _ = await local.provider.create({ network: { registries: true } });
  const writable = readdirSync(local.stateDir, { recursive: true, withFileTypes: true })
    // Other users do not come through to what sandboxes have made.
    .filter(({ parentPath }) => !/\/(layers|boxes|spares)\b/.test(parentPath))
    .filter((one) => !one.isSymbolicLink() && (lstatSync(join(one.parentPath, one.name)).mode & 0o022) !== 0)
    .map(({ name }) => name);
  const reachable = ["layers", "boxes", "spares"].filter(
    (name) => (lstatSync(join(local.stateDir, name)).mode & 0o077) !== 0,
  );
  // Node writes there, as the umask of its process says; nobody else comes in.
  expect(lstatSync(join(local.stateDir, "compile-cache")).mode & 0o077).toBe(0);
  expect({ writable: writable.filter((name) => !/^v\d+\./.test(name)), reachable }).toEqual({
    writable: [],
    reachable: [],
  });
});
