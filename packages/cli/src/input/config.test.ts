import { hasCode } from "@slipway/contract";
import { describe, expect, test } from "vitest";
import { readSettings } from "./config.ts";

const user = { isRoot: false, home: "/home/ann" };
const root = { isRoot: true, home: "/root" };

function mistakesOf(environment: Record<string, string>): string {
  try {
    readSettings(environment, user);
  } catch (error) {
    if (hasCode(error, "invalid_settings")) return error.message;
    throw error;
  }
  return "";
}

describe("defaults", () => {
  test("an empty environment gives the local provider and its limits", () => {
    expect(readSettings({}, user)).toEqual({
      provider: "local",
      because: "neither SANDBOX_PROVIDER nor Modal's credentials are set",
      modal: undefined,
      storage: { root: { directory: "/home/ann/.local/share/slipway/storage" }, s3: undefined },
      stateDir: "/home/ann/.local/share/slipway",
      sandboxUid: undefined,
      minFreeMb: undefined,
      previewPort: 3000,
      lifetimeMs: 3_600_000,
      idleMs: 1_200_000,
      execTimeoutMs: 300_000,
      agentsDir: "/home/ann/.local/share/slipway/agents",
    });
  });

  test("the state directory is the system's as root, and follows XDG_DATA_HOME otherwise", () => {
    expect(readSettings({}, root).stateDir).toBe("/var/lib/slipway");
    expect(readSettings({ XDG_DATA_HOME: "/data" }, user).stateDir).toBe("/data/slipway");
    expect(readSettings({ XDG_DATA_HOME: "/data", SLIPWAY_STATE_DIR: "/srv/s" }, root).stateDir).toBe("/srv/s");
  });

  test("an empty variable counts as not set", () => {
    expect(readSettings({ SANDBOX_PREVIEW_PORT: "", SANDBOX_PROVIDER: "" }, user).previewPort).toBe(3000);
  });
});

describe("values", () => {
  test("every setting is taken over in its unit", () => {
    const settings = readSettings(
      {
        SANDBOX_PREVIEW_PORT: "8080",
        MODAL_SANDBOX_TTL: "7200",
        MODAL_SANDBOX_INACTIVITY_MINUTES: "5",
        SLIPWAY_EXEC_TIMEOUT: "60",
        SLIPWAY_SANDBOX_UID: "4242",
        SLIPWAY_MIN_FREE_MB: "0",
        SANDBOX_PROVIDER: "local",
        MODAL_TOKEN_ID: "id",
        MODAL_TOKEN_SECRET: "secret",
      },
      user,
    );
    expect(settings).toMatchObject({ previewPort: 8080, lifetimeMs: 7_200_000, idleMs: 300_000 });
    expect(settings).toMatchObject({ execTimeoutMs: 60_000, sandboxUid: 4242, minFreeMb: 0, provider: "local" });
  });
});

describe("mistakes", () => {
  const cases: [string, Record<string, string>, RegExp][] = [
    [
      "a relative state directory",
      { SLIPWAY_STATE_DIR: "state" },
      /SLIPWAY_STATE_DIR: "state" is not an absolute path/,
    ],
    [
      "a state directory of the kernel's",
      { SLIPWAY_STATE_DIR: "/proc/slipway" },
      /SLIPWAY_STATE_DIR: no files can be kept in "\/proc\/slipway"/,
    ],
    ["a setting of sandboxes", { SANDBOX_PROVIDER: "podman" }, /"podman" is not a provider/],
  ];
  test.each(cases)("%s is refused with a sentence", (_, environment, expected) => {
    expect(mistakesOf(environment)).toMatch(expected);
    expect(mistakesOf(environment)).toMatch(/^One setting is wrong:\n- /);
  });

  test("all mistakes are told at once, contradictions among the right ones too", () => {
    const message = mistakesOf({
      SANDBOX_PREVIEW_PORT: "0",
      SLIPWAY_STATE_DIR: "here",
      SANDBOX_PROVIDER: "modal",
      MODAL_SANDBOX_TTL: "60",
    });
    expect(message).toMatch(/^5 settings are wrong:/);
    expect(message.split("\n")).toHaveLength(6);
  });
});
