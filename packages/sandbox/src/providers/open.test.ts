import { describe, expect, test } from "vitest";
import { openProvider } from "./open.ts";

describe("openProvider", () => {
  test.each([undefined, "local"])("%s opens the local provider", async (provider) => {
    await using opened = await openProvider({ provider, stateDir: "/nonexistent" });
    expect(opened.name).toBe("local");
  });

  test.each([
    ["podman", /"podman" is not a provider \(available: local\)/],
    ["modal", /this version has no modal provider \(available: local\)/],
  ])("%s is refused, with the names that there are", async (provider, message) => {
    const opening = openProvider({ provider, stateDir: "/nonexistent" });
    await expect(opening).rejects.toMatchObject({ code: "invalid_settings", message: expect.stringMatching(message) });
  });
});
