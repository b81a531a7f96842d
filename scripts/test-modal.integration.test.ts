import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const script = fileURLToPath(new URL("test-modal.ts", import.meta.url));

test.each([
  ["without credentials", {}, /^Refused: .*costs money.*MODAL_TOKEN_ID and MODAL_TOKEN_SECRET are not set/s],
  ["with half of them", { MODAL_TOKEN_ID: "ak-1" }, /^Refused: .*MODAL_TOKEN_ID is set and MODAL_TOKEN_SECRET is not/s],
])("%s, the tests on a Modal account refuse to start", (_, env, expected) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [script], { env, encoding: "utf8" });
  expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
  expect(stderr).toMatch(expected);
});
