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

test("Modal's credentials open the provider on Modal", async () => {
  const { settings } = readSandboxSettings({ MODAL_API_TOKEN: "ak-1:as-1" });
  await using opened = await openProvider({ ...settings, stateDir });
  expect(opened.name).toBe("modal");
});
