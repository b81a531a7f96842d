import { expect, test } from "vitest";
import { readSettings } from "./settings.ts";

const given = { SLIPWAY_RUN_SOCKET: "/run/host.sock", SLIPWAY_TOOLS_DIR: "/tools", SLIPWAY_RUN_DIR: "/runs" };

test("agents and their commands do not get the runner's own variables", () => {
  const settings = readSettings({
    ...given,
    SLIPWAY_RUN_TOKEN: "slr_secret",
    PATH: "/bin",
    HOME: "/root",
  });
  expect(settings.environment).toEqual({ PATH: "/bin", HOME: "/root" });
  expect(settings).toMatchObject({ token: "slr_secret", socketPath: "/run/host.sock", toolsDirectory: "/tools" });
});

test("each run has a directory of its own, the same after a restart", () => {
  const directoryOf = (token: string) => readSettings({ ...given, SLIPWAY_RUN_TOKEN: token }).directory;
  expect(directoryOf("slr_one")).toMatch(/^\/runs\/[0-9a-f]{16}$/);
  expect(directoryOf("slr_one")).toBe(directoryOf("slr_one"));
  expect(directoryOf("slr_one")).not.toBe(directoryOf("slr_two"));
});

test("a run with another one's name shares its directory but has its own channel", () => {
  const named = (token: string) => readSettings({ ...given, SLIPWAY_RUN_TOKEN: token, SLIPWAY_RUN_NAME: "att_1" });
  const [one, other] = [named("slr_one"), named("slr_two")];
  expect([one.directory, other.directory]).toEqual(["/runs/att_1", "/runs/att_1"]);
  expect(one.channelDirectory).not.toBe(other.channelDirectory);
  expect(one.environment).toEqual({});
  expect(() => readSettings({ ...given, SLIPWAY_RUN_TOKEN: "slr_one", SLIPWAY_RUN_NAME: "../up" })).toThrow();
});

test("a missing token is named", () => {
  expect(() => readSettings(given)).toThrow("SLIPWAY_RUN_TOKEN");
});
