import { expect, test } from "vitest";
import { openProvider } from "./open.ts";
import { readSandboxSettings } from "./settings.ts";

const stateDir = "/nonexistent";

test.each([{}, { provider: "local" as const }])("%j opens the local provider", async (settings) => {
  await using opened = await openProvider({ ...settings, stateDir });
  expect(opened.name).toBe("local");
});

test("modal without credentials is refused as a setting", async () => {
  await expect(openProvider({ provider: "modal", stateDir })).rejects.toMatchObject({ code: "invalid_settings" });
});

test("modal is refused with a code while there is none", async () => {
  const { settings } = readSandboxSettings({ MODAL_API_TOKEN: "ak-1:as-1" });
  await expect(openProvider({ ...settings, stateDir })).rejects.toMatchObject({
    code: "component_missing",
    message: expect.stringMatching(/no modal provider/),
  });
});
