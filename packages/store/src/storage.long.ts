import { describe, expect, test } from "vitest";
import { startS3Server } from "./testing/s3-server.ts";
import { openSlipway } from "./testing/slipway-program.ts";

const listing =
  "find . -mindepth 1 -printf '%p %y %m %s %l\\n' | sort; find . -type f -print0 | sort -z | xargs -0 sha256sum";

/** Settings of a directory, and of a bucket of a server of their own. */
async function settingsOf(kind: "a directory" | "a bucket") {
  if (kind === "a directory") return { settings: {}, [Symbol.asyncDispose]: async () => {} };
  const server = await startS3Server();
  const { variables: settings } = await server.makeBucket("large");
  return { settings, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

describe.each(["a directory", "a bucket"] as const)("%s", (kind) => {
  test.each([
    [
      "10,000 files",
      "i=0; while [ $i -lt 10000 ]; do mkdir -p d$((i % 97)); head -c $((i % 3000)) /dev/urandom > d$((i % 97))/f$i; i=$((i+1)); done",
    ],
    ["one file of 2 GB", "head -c 2147483659 /dev/urandom > large"],
  ])("brings %s there and back, byte for byte", { timeout: 1_800_000 }, async (_name, make) => {
    await using storage = await settingsOf(kind);
    await using slipway = openSlipway(storage.settings);
    const create = () => slipway.run("sandbox", "create", "--workspace", "large", "--disk", "6g", "--idle", "never");
    const inside = (id: string, script: string) =>
      slipway.run("sandbox", "exec", "--timeout", "20m", id, "--", "sh", "-c", script);
    const first = await create();
    await inside(first, make);
    const before = await inside(first, listing);
    await slipway.run("sandbox", "rm", "--sync", first);
    expect(await inside(await create(), listing)).toBe(before);
  });
});
