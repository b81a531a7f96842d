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
    ["a port out of range", { SANDBOX_PREVIEW_PORT: "70000" }, /SANDBOX_PREVIEW_PORT: "70000" .* 1 to 65535/],
    ["a port that is no number", { SANDBOX_PREVIEW_PORT: "web" }, /SANDBOX_PREVIEW_PORT: "web"/],
    ["a number with a sign", { MODAL_SANDBOX_TTL: "-5" }, /MODAL_SANDBOX_TTL: "-5"/],
    ["a lifetime above 24 hours", { MODAL_SANDBOX_TTL: "86401" }, /MODAL_SANDBOX_TTL: "86401" .* 86400/],
    ["free disk with a unit", { SLIPWAY_MIN_FREE_MB: "1g" }, /SLIPWAY_MIN_FREE_MB: "1g" .* 0 to 10485760/],
    ["root as the sandboxes' user", { SLIPWAY_SANDBOX_UID: "0" }, /SLIPWAY_SANDBOX_UID: "0"/],
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
    ["an unknown provider", { SANDBOX_PROVIDER: "podman" }, /"podman" is not a provider \(available: local\)/],
    ["a provider to come", { SANDBOX_PROVIDER: "docker" }, /this version has no docker provider \(available: local\)/],
    ["half of Modal's credentials", { MODAL_TOKEN_ID: "x" }, /MODAL_TOKEN_ID is set and MODAL_TOKEN_SECRET is not/],
    [
      "Modal by its credentials",
      { MODAL_TOKEN_ID: "x", MODAL_TOKEN_SECRET: "y" },
      /credentials are set.*Set SANDBOX_PROVIDER=local/,
    ],
    [
      "a lifetime shorter than the exec timeout",
      { MODAL_SANDBOX_TTL: "200", MODAL_SANDBOX_INACTIVITY_MINUTES: "1" },
      /MODAL_SANDBOX_TTL \(200 s\) is shorter than SLIPWAY_EXEC_TIMEOUT \(300 s, the default\)/,
    ],
    [
      "an idle time longer than the lifetime",
      { MODAL_SANDBOX_INACTIVITY_MINUTES: "61" },
      /\(61 min\) is longer than MODAL_SANDBOX_TTL \(3600 s, the default\)/,
    ],
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
