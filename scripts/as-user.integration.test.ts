import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const asUser = fileURLToPath(new URL("as-user.mjs", import.meta.url));
const script = `console.log(JSON.stringify({
  uid: process.getuid(), groups: process.getgroups(), cwd: process.cwd(),
  home: process.env.HOME, ci: process.env.CI, shell: process.env.SHELL,
  modules: require("fs").existsSync("node_modules/vitest"),
}))`;

it("a script runs as an ordinary user in a copy that is gone afterwards; without root it is refused", async () => {
  const env = { ...process.env, CI: "true", SHELL: "/bin/sh" };
  const run = promisify(execFile)(process.execPath, [asUser, "-e", script], { env });
  if (process.getuid?.() !== 0) {
    await expect(run).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining("only root") });
    return;
  }
  const seen = JSON.parse((await run).stdout);
  expect(seen).toMatchObject({ uid: 61200, groups: [61200], ci: "true", modules: true });
  expect(seen.shell).toBeUndefined();
  expect([seen.cwd, seen.home].filter(existsSync)).toEqual([]);
}, 120_000);
