import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { keepServerName } from "./server-name.ts";

function stateDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "slipway-name-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return directory;
}

test("a server's name is the same at each start, and another one in each state directory", () => {
  const [one, other] = [stateDirectory(), stateDirectory()];
  const name = keepServerName(one);
  expect(name).toMatch(/^[0-9a-f]{16}$/);
  expect(keepServerName(one)).toBe(name);
  expect(keepServerName(other)).not.toBe(name);
  expect(readdirSync(one)).toEqual(["server-name"]);
  expect(statSync(join(one, "server-name")).mode & 0o077).toBe(0);
});

test.each(["", "abc", "0123456789abcdef0", "../../../../etc/x"])(
  "a name that was cut short is made anew: %j",
  (kept) => {
    const directory = stateDirectory();
    writeFileSync(join(directory, "server-name"), kept);
    const name = keepServerName(directory);
    expect(name).toMatch(/^[0-9a-f]{16}$/);
    expect(keepServerName(directory)).toBe(name);
  },
);
