import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { otherProviders, readSandboxSettings } from "./settings.ts";

const scratch = mkdtempSync(join(tmpdir(), "slipway-settings-"));
afterAll(() => rmSync(scratch, { recursive: true }));
const certificate = join(scratch, "ca.pem");
writeFileSync(certificate, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
const noCertificate = join(scratch, "key.pem");
writeFileSync(noCertificate, "hello");

const credentials = { MODAL_TOKEN_ID: "ak-one", MODAL_TOKEN_SECRET: "as-hidden" };
const both = { MODAL_API_TOKEN: "ak-one:as-hidden" };

describe("the provider", () => {
  test.each([
    ["by default", {}, "local", "neither SANDBOX_PROVIDER nor Modal's credentials are set"],
    ["with Modal's credentials", credentials, "modal", "Modal's credentials are set and SANDBOX_PROVIDER is not"],
    ["with one token for all", both, "modal", "Modal's credentials are set and SANDBOX_PROVIDER is not"],
    ["named", { SANDBOX_PROVIDER: "local", ...credentials }, "local", "SANDBOX_PROVIDER is local"],
    ["named with credentials", { SANDBOX_PROVIDER: "modal", ...credentials }, "modal", "SANDBOX_PROVIDER is modal"],
    ["set to nothing", { SANDBOX_PROVIDER: "", MODAL_TOKEN_ID: "" }, "local", "neither SANDBOX_PROVIDER nor"],
    ["of a program's own", { SANDBOX_PROVIDER: "simulated" }, "simulated", "SANDBOX_PROVIDER is simulated"],
  ])("%s", (_, environment, provider, because) => {
    const { settings, mistakes } = readSandboxSettings(environment, ["simulated"]);
    expect(mistakes).toEqual([]);
    expect(settings).toMatchObject({ provider, because: expect.stringContaining(because) });
  });

  test("that is not in use is told with what the settings lack for it", () => {
    const others = (environment: Record<string, string>) => otherProviders(readSandboxSettings(environment).settings);
    expect(others({})).toEqual([{ name: "modal", missing: "MODAL_TOKEN_ID and MODAL_TOKEN_SECRET are not set" }]);
    expect(others({ SANDBOX_PROVIDER: "local", ...credentials })).toEqual([{ name: "modal", missing: null }]);
    expect(others(credentials)).toEqual([{ name: "local", missing: null }]);
  });
});

describe("what Modal is opened with", () => {
  test("has defaults", () => {
    expect(readSandboxSettings(credentials).settings.modal).toEqual({
      tokenId: "ak-one",
      tokenSecret: "as-hidden",
      workspace: undefined,
      environment: undefined,
      app: "slipway",
      apiBase: "https://api.modal.com:443",
      maxConcurrent: 100,
      regions: [],
      tunnelCa: undefined,
    });
    expect(readSandboxSettings({}).settings.modal).toBeUndefined();
  });

  test("is taken over from every setting", () => {
    const { settings, mistakes } = readSandboxSettings({
      ...both,
      MODAL_WORKSPACE: "ada",
      MODAL_ENVIRONMENT: "main",
      MODAL_SANDBOX_APP: "builds",
      MODAL_API_BASE: "http://127.0.0.1:9000/",
      MODAL_SERVER_URL: "https://other.example.com",
      MODAL_MAX_CONCURRENT: "7",
      SLIPWAY_MODAL_REGIONS: "us-east,eu-west,us-east",
      SLIPWAY_MODAL_TUNNEL_CA: certificate,
    });
    expect(mistakes).toEqual([]);
    expect(settings.modal).toEqual({
      tokenId: "ak-one",
      tokenSecret: "as-hidden",
      workspace: "ada",
      environment: "main",
      app: "builds",
      apiBase: "http://127.0.0.1:9000",
      maxConcurrent: 7,
      regions: ["us-east", "eu-west"],
      tunnelCa: expect.stringContaining("BEGIN CERTIFICATE"),
    });
  });

  test("is the same by both ways to give a token, and MODAL_SERVER_URL counts where MODAL_API_BASE is not set", () => {
    expect(readSandboxSettings({ ...credentials, ...both }).mistakes).toEqual([]);
    const { settings } = readSandboxSettings({ ...credentials, MODAL_SERVER_URL: "https://modal.example.com" });
    expect(settings.modal?.apiBase).toBe("https://modal.example.com:443");
  });
});

describe("mistakes", () => {
  const cases: [string, Record<string, string>, RegExp][] = [
    ["an unknown provider", { SANDBOX_PROVIDER: "podman" }, /SANDBOX_PROVIDER: "podman" is not .*: local, modal\)/],
    ["a provider to come", { SANDBOX_PROVIDER: "docker" }, /SANDBOX_PROVIDER: this version has no docker provider/],
    ["a simulation", { SANDBOX_PROVIDER: "simulated" }, /SANDBOX_PROVIDER: only builds can be simulated/],
    ["Modal without credentials", { SANDBOX_PROVIDER: "modal" }, /is modal, and MODAL_TOKEN_ID and MODAL_TOKEN_SECRET/],
    ["half a pair", { MODAL_TOKEN_ID: "ak-1" }, /MODAL_TOKEN_ID is set and MODAL_TOKEN_SECRET is not/],
    ["the other half", { MODAL_TOKEN_SECRET: "as-1" }, /MODAL_TOKEN_SECRET is set and MODAL_TOKEN_ID is not/],
    ["half a pair beside a token", { ...both, MODAL_TOKEN_ID: "ak-1" }, /MODAL_TOKEN_ID is set and MODAL_TOKEN_SECRET/],
    ["two tokens", { ...credentials, MODAL_API_TOKEN: "ak-2:as-2" }, /MODAL_API_TOKEN is another token than/],
    ["a token without a colon", { MODAL_API_TOKEN: "ak-hidden" }, /MODAL_API_TOKEN: expected .* id:secret/],
    [
      "a token with a line break",
      { ...credentials, MODAL_TOKEN_ID: "ak-hidden\n" },
      /MODAL_TOKEN_ID: expected a token/,
    ],
    ["a secret as an id", { ...credentials, MODAL_TOKEN_ID: "as-hidden" }, /MODAL_TOKEN_ID: this is a token's secret/],
    [
      "an id as a secret",
      { ...credentials, MODAL_TOKEN_SECRET: "ak-hidden" },
      /MODAL_TOKEN_SECRET: this is a token's id/,
    ],
    ["an address with a password", { MODAL_API_BASE: "https://a:hidden@b.example" }, /MODAL_API_BASE: expected https/],
    ["an address with a path", { MODAL_API_BASE: "https://b.example/v1" }, /MODAL_API_BASE: expected https/],
    ["plain text over the network", { MODAL_API_BASE: "http://b.example" }, /MODAL_API_BASE: expected https/],
    ["no address", { MODAL_SERVER_URL: "modal" }, /MODAL_SERVER_URL: expected https/],
    ["a workspace that is no name", { MODAL_WORKSPACE: "a b" }, /MODAL_WORKSPACE: expected up to 64/],
    ["an environment that is no name", { MODAL_ENVIRONMENT: "../x" }, /MODAL_ENVIRONMENT: expected up to 64/],
    ["a long app", { MODAL_SANDBOX_APP: "x".repeat(65) }, /MODAL_SANDBOX_APP: expected up to 64/],
    ["no sandbox at once", { MODAL_MAX_CONCURRENT: "0" }, /MODAL_MAX_CONCURRENT: "0" is not .* from 1 to 100000/],
    ["regions with spaces", { SLIPWAY_MODAL_REGIONS: "us, eu" }, /SLIPWAY_MODAL_REGIONS: expected regions/],
    ["an authority that is not there", { SLIPWAY_MODAL_TUNNEL_CA: join(scratch, "no") }, /TUNNEL_CA: .*\(ENOENT\)/],
    ["an authority that is none", { SLIPWAY_MODAL_TUNNEL_CA: noCertificate }, /TUNNEL_CA: .*no certificate in PEM/],
    ["a relative authority", { SLIPWAY_MODAL_TUNNEL_CA: "ca.pem" }, /TUNNEL_CA: "ca.pem" is not an absolute path/],
    ["a port out of range", { SANDBOX_PREVIEW_PORT: "70000" }, /SANDBOX_PREVIEW_PORT: "70000" .* 1 to 65535/],
    ["a port that is no number", { SANDBOX_PREVIEW_PORT: "web" }, /SANDBOX_PREVIEW_PORT: "web"/],
    ["a number with a sign", { MODAL_SANDBOX_TTL: "-5" }, /MODAL_SANDBOX_TTL: "-5"/],
    ["a lifetime above 24 hours", { MODAL_SANDBOX_TTL: "86401" }, /MODAL_SANDBOX_TTL: "86401" .* 86400/],
    ["an exec longer than 24 hours", { SLIPWAY_EXEC_TIMEOUT: "86401" }, /SLIPWAY_EXEC_TIMEOUT: "86401" .* 86400/],
    ["free disk with a unit", { SLIPWAY_MIN_FREE_MB: "1g" }, /SLIPWAY_MIN_FREE_MB: "1g" .* 0 to 10485760/],
    ["root as the sandboxes' user", { SLIPWAY_SANDBOX_UID: "0" }, /SLIPWAY_SANDBOX_UID: "0"/],
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
  test.each(cases)("%s is one sentence with the setting's name, and no secret", (_, environment, expected) => {
    const { mistakes } = readSandboxSettings(environment);
    expect(mistakes).toEqual([expect.stringMatching(expected)]);
    expect(mistakes.join()).not.toContain("hidden");
  });

  test("are told all at once", () => {
    const { mistakes } = readSandboxSettings({
      SANDBOX_PROVIDER: "podman",
      MODAL_TOKEN_ID: "ak-1",
      MODAL_API_BASE: "x",
      MODAL_MAX_CONCURRENT: "x",
      MODAL_SANDBOX_TTL: "60",
    });
    expect(mistakes).toHaveLength(6);
  });
});
