import { type Environment, microUsdPerUsd } from "@slipway/contract";
import { describe, expect, test } from "vitest";
import { readConfig } from "./config.ts";

const host = { isRoot: false, home: "/home/ada" };
const read = (environment: Environment = {}, on = host) => readConfig(environment, on);

describe("without settings", () => {
  test("a server keeps a file, drives builds by itself and has the usual limits", () => {
    const config = read();
    expect(config).toMatchObject({
      stateDirectory: "/home/ada/.local/share/slipway",
      socketPath: "/home/ada/.local/share/slipway/server.sock",
      database: { url: "file:/home/ada/.local/share/slipway/slipway.db" },
      slots: 20,
      buildDefaults: {
        slots: 5,
        timeoutMs: 24 * 3_600_000,
        budgetMicroUsd: 100 * microUsdPerUsd,
        checkpointMs: 300_000,
      },
      simulation: null,
    });
    expect([config.name, config.redis, config.restate]).toEqual(Array(3).fill(undefined));
    expect(config.locks.map(({ path }) => path)).toEqual([
      "/home/ada/.local/share/slipway/server.lock",
      "/home/ada/.local/share/slipway/slipway.db.lock",
    ]);
  });

  test("root's state is the machine's, and a data home is used where it is set", () => {
    expect(read({}, { ...host, isRoot: true }).stateDirectory).toBe("/var/lib/slipway");
    expect(read({ XDG_DATA_HOME: "/data" }).stateDirectory).toBe("/data/slipway");
  });
});

test("every setting arrives", () => {
  const config = read({
    SLIPWAY_STATE_DIR: "/srv/state",
    SLIPWAY_SERVER_NAME: "one",
    SLIPWAY_SERVER_HOST: "10.0.0.7",
    SLIPWAY_SANDBOX_UID: "4711",
    SLIPWAY_MIN_FREE_MB: "2048",
    SANDBOX_PROVIDER: "simulated",
    SLIPWAY_SIMULATION_SPEED: "60",
    DATABASE_URL: "postgres://user:pass@db/slipway",
    SLIPWAY_DATABASE_TOKEN: "t",
    REDIS_URL: "redis://cache:6379",
    REDIS_SANDBOX_PREFIX: "mine:",
    RESTATE_URL: "http://restate:8080",
    RESTATE_ADMIN_URL: "http://restate:9070",
    SLIPWAY_RESTATE_KEY: `publickeyv1_${"a".repeat(43)}`,
    MAX_PARALLEL_SANDBOXES: "20",
    SLIPWAY_FLEET_SLOTS: "200",
    SLIPWAY_PUSH_URL: "git@example.com:me/apps.git",
    SLIPWAY_PULL_REQUEST_COMMAND: "/usr/local/bin/open-pull-request",
    BUILD_TIMEOUT_HOURS: "1.5",
    BUILD_BUDGET_USD: "12.50",
    BUILD_CHECKPOINT_INTERVAL: "60",
    SLIPWAY_MODEL: "scripted/planner",
  });
  expect(config).toMatchObject({
    stateDirectory: "/srv/state",
    name: "one",
    sandboxes: { provider: "simulated", sandboxUid: 4711, minFreeMb: 2048 },
    slots: 200,
    simulation: { speed: 60 },
    remote: { pushUrl: "git@example.com:me/apps.git", pullRequestCommand: "/usr/local/bin/open-pull-request" },
    database: { url: "postgres://user:pass@db/slipway", authToken: "t" },
    redis: { url: "redis://cache:6379", prefix: "mine:" },
    restate: {
      url: "http://restate:8080",
      adminUrl: "http://restate:9070",
      identityKey: expect.any(String),
      host: "10.0.0.7",
    },
    buildDefaults: { slots: 20, timeoutMs: 5_400_000, budgetMicroUsd: 12_500_000, checkpointMs: 60_000 },
  });
  expect(config.models.models.plan).toBe("scripted/planner");
  // Servers may share a database of this kind.
  expect(config.locks).toHaveLength(1);
});

describe("a wrong setting is named with what is expected", () => {
  test.each([
    [{ SLIPWAY_STATE_DIR: "here" }, /SLIPWAY_STATE_DIR: "here" is not an absolute path/],
    [{ SLIPWAY_STATE_DIR: `/${"x".repeat(100)}` }, /SLIPWAY_STATE_DIR: the path is too long for a socket/],
    [{ SLIPWAY_STATE_DIR: "/proc/x" }, /SLIPWAY_STATE_DIR: no files can be kept in "\/proc\/x"/],
    [{ DATABASE_URL: "file:/proc/x/slipway.db" }, /DATABASE_URL: expected file:/],
    [{ SLIPWAY_SERVER_NAME: "a b" }, /SLIPWAY_SERVER_NAME: expected up to 64/],
    [{ SANDBOX_PROVIDER: "podman" }, /SANDBOX_PROVIDER: "podman" is not a provider .*local, modal, simulated/],
    [{ DATABASE_URL: "mysql://x" }, /DATABASE_URL: expected file:/],
    [{ DATABASE_URL: "file:slipway.db" }, /DATABASE_URL: expected file:\/absolute/],
    [{ REDIS_URL: "cache:6379" }, /REDIS_URL: expected an address such as redis:/],
    [{ REDIS_URL: "redis://" }, /REDIS_URL: expected an address such as redis:/],
    [{ REDIS_URL: "redis://cache/db" }, /REDIS_URL: expected an address such as redis:/],
    [
      { REDIS_URL: "redis://[::1]:6379/1", REDIS_SANDBOX_PREFIX: "{x}" },
      /^One.*\n- REDIS_SANDBOX_PREFIX: expected up to/,
    ],
    [{ RESTATE_URL: "restate" }, /RESTATE_URL: expected an address such as http:/],
    [{ RESTATE_URL: "http://r:1", SLIPWAY_RESTATE_KEY: "key" }, /SLIPWAY_RESTATE_KEY: expected .*publickeyv1_/],
    [{ MAX_PARALLEL_SANDBOXES: "0" }, /MAX_PARALLEL_SANDBOXES: "0" is not a whole number from 1 to 1000/],
    [{ BUILD_TIMEOUT_HOURS: "-1" }, /BUILD_TIMEOUT_HOURS: "-1" is not a number/],
    [{ BUILD_BUDGET_USD: "0" }, /BUILD_BUDGET_USD: "0" is not a number from 0.01/],
    [{ BUILD_CHECKPOINT_INTERVAL: "1e3" }, /BUILD_CHECKPOINT_INTERVAL: "1e3" is not a whole number/],
    [{ SLIPWAY_PUSH_URL: "https://me:secret@example.com/app.git" }, /SLIPWAY_PUSH_URL: expected an https/],
    [{ SLIPWAY_PUSH_URL: "https://token@example.com/app.git" }, /SLIPWAY_PUSH_URL: expected an https/],
    [{ SLIPWAY_PUSH_URL: "ext::sh -c evil" }, /SLIPWAY_PUSH_URL: expected an https/],
    [{ SLIPWAY_PUSH_URL: "--upload-pack=evil" }, /SLIPWAY_PUSH_URL: expected an https/],
    [{ SLIPWAY_PULL_REQUEST_COMMAND: "gh pr create" }, /"gh pr create" is not the absolute path of a program/],
    [{ SLIPWAY_PULL_REQUEST_COMMAND: "/bin/pr" }, /SLIPWAY_PULL_REQUEST_COMMAND is set and SLIPWAY_PUSH_URL is not/],
    [{ SLIPWAY_MODEL: "gpt" }, /SLIPWAY_MODEL: "gpt" is not a model/],
  ])("%j", (environment, expected) => {
    expect(() => read(environment as Environment)).toThrow(expected);
  });

  test("and never with the password that is in it", () => {
    expect(() => read({ DATABASE_URL: "mysql://u:secret@x", REDIS_URL: "http://u:secret@x" })).toThrow(
      expect.not.objectContaining({ message: expect.stringContaining("secret") }),
    );
  });

  test("all of them at once", () => {
    const environment = { MAX_PARALLEL_SANDBOXES: "x", REDIS_URL: "x", SLIPWAY_MODEL: "x", BUILD_BUDGET_USD: "x" };
    expect(() => read(environment)).toThrow(
      /^4 settings are wrong:\n(- .*(REDIS_URL|MAX_PARALLEL_SANDBOXES|BUILD_BUDGET_USD|SLIPWAY_MODEL).*\n?){4}$/,
    );
  });

  test("and an empty one counts as not set", () => {
    expect(read({ DATABASE_URL: "", MAX_PARALLEL_SANDBOXES: "" }).buildDefaults.slots).toBe(5);
  });
});

describe("settings that contradict each other are refused", () => {
  test.each([
    [{ SLIPWAY_FLEET_SLOTS: "3" }, /SLIPWAY_FLEET_SLOTS \(3\) is less than MAX_PARALLEL_SANDBOXES \(5, the default\)/],
    [
      { BUILD_TIMEOUT_HOURS: "0.05" },
      /BUILD_CHECKPOINT_INTERVAL \(300 s, the default\) is longer than BUILD_TIMEOUT_HOURS \(0.05 h\)/,
    ],
    [{ RESTATE_ADMIN_URL: "http://r:9070" }, /RESTATE_ADMIN_URL is set and RESTATE_URL is not/],
    [{ RESTATE_URL: "unix:/run/restate/ingress.sock" }, /RESTATE_URL is set and SLIPWAY_RESTATE_KEY is not/],
    [{ REDIS_SANDBOX_PREFIX: "x:" }, /REDIS_SANDBOX_PREFIX is set and REDIS_URL is not/],
    [{ SLIPWAY_SIMULATION_SPEED: "60" }, /SLIPWAY_SIMULATION_SPEED is set and SANDBOX_PROVIDER is not simulated/],
    [
      { MODAL_API_TOKEN: "ak-1:as-1", MODAL_MAX_CONCURRENT: "4" },
      /MODAL_MAX_CONCURRENT \(4\) is less than MAX_PARALLEL_SANDBOXES \(5\)/,
    ],
    [{ MODAL_SANDBOX_INACTIVITY_MINUTES: "61" }, /MODAL_SANDBOX_INACTIVITY_MINUTES \(61 min\) is longer than/],
  ])("%j", (environment, expected) => {
    expect(() => read(environment as Environment)).toThrow(expected);
  });

  test("and a wrong one is not taken for a missing one", () => {
    const message = (() => {
      try {
        read({ RESTATE_URL: "nothing", SLIPWAY_RESTATE_KEY: `publickeyv1_${"a".repeat(43)}` });
      } catch (error) {
        return (error as Error).message;
      }
      return "";
    })();
    expect(message).toMatch(/^One setting is wrong:\n- RESTATE_URL: /);
  });
});
