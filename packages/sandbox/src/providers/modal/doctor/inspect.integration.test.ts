import { startModalStandIn } from "@slipway/modal-stand-in";
import { expect, test } from "vitest";
import { readSandboxSettings } from "../../settings.ts";
import { inspectModal } from "./inspect.ts";

test("Modal's own client reaches a server that speaks its protocol, and its token is checked", async () => {
  await using standIn = await startModalStandIn({ processes: false });
  const inspect = async (secret: string) => {
    const environment = { ...standIn.environment, MODAL_TOKEN_SECRET: secret };
    const { settings, mistakes } = readSandboxSettings(environment);
    if (settings.modal === undefined) throw new Error(mistakes.join());
    return await inspectModal(settings.modal);
  };
  const right = await inspect(standIn.tokenSecret);
  expect(right.map(({ name, status }) => [name, status])).toEqual([
    ["modal account", "ok"],
    ["modal clock", "ok"],
    ["modal workspace", "ok"],
    ["modal app", "ok"],
  ]);
  expect(standIn.running()).toEqual([]);
  expect(await inspect("as-wrong")).toMatchObject([
    { status: "fail", detail: expect.stringMatching(/refuses the cred/) },
  ]);
});
