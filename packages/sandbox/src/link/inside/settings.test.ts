import { expect, test } from "vitest";
import { readSettings } from "./settings.ts";

const whole = {
  SLIPWAY_LINK_KEY: "ab".repeat(32),
  SLIPWAY_LINK_PORT: "61000",
  SLIPWAY_LINK_UNTIL: "1795126692903",
  SLIPWAY_LINK_AGENT: "/opt/agent",
  SLIPWAY_LINK_STATE: "/var/lib/link",
};

test("settings have defaults for what a sandbox need not choose", () => {
  expect(readSettings(whole)).toMatchObject({
    port: 61000,
    user: "1000:1000",
    processes: 512,
    previews: [],
    channel: "/run/slipway/run.sock",
  });
  const chosen = { ...whole, SLIPWAY_LINK_USER: "7", SLIPWAY_LINK_PREVIEWS: "61001=3000,61002=5173" };
  expect(readSettings(chosen)).toMatchObject({
    user: "7:7",
    previews: [
      { publicPort: 61001, port: 3000 },
      { publicPort: 61002, port: 5173 },
    ],
  });
});

test.each([
  ["KEY", undefined, "missing"],
  ["KEY", "ab".repeat(31), "not what it should be"],
  ["PORT", "0", "no port"],
  ["PORT", "70000", "no port"],
  ["UNTIL", "soon", "not what it should be"],
  ["AGENT", "agent", "not what it should be"],
  ["STATE", "", "missing"],
  ["USER", "0", "not what it should be"],
  ["USER", "1000:0", "not what it should be"],
  ["PROCESSES", "-1", "not what it should be"],
  ["PREVIEWS", "61001", "not what it should be"],
  ["PREVIEWS", "61001=99999", "no port"],
  ["CHANNEL", "run.sock", "not what it should be"],
])("%s %s is refused by its name", (name, value, why) => {
  const environment = { ...whole, [`SLIPWAY_LINK_${name}`]: value };
  expect(() => readSettings(environment)).toThrow(
    new RegExp(`^SLIPWAY_LINK_${name} (is|names) .*${why.split(" ").at(-1)}`),
  );
});
