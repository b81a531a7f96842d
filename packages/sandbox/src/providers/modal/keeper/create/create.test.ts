import { createSandboxSchema, networkPolicySchema } from "@slipway/contract";
import { describe, expect, test } from "vitest";
import { recordFixture } from "../../../../keeper/record-fixture.ts";
import { checkGpu } from "./gpu.ts";
import { allowlistsOf } from "./network.ts";
import { graceMs, paramsOf } from "./sandbox.ts";

describe("a GPU", () => {
  test.each([
    ["T4", "T4:1"],
    ["h100:2", "H100:2"],
    ["A100-80GB", "A100-80GB:1"],
  ])("%s is %s", (asked, given) => expect(checkGpu(asked)).toBe(given));

  test.each(["", "Z80", "T4:0", "T4:9", "T4:x", "T4:1:2"])("%j is refused", (asked) => {
    expect(() => checkGpu(asked)).toThrow(expect.objectContaining({ code: "unknown_gpu" }));
  });
});

test("a policy that allows nothing is a list that reaches nothing", () => {
  const nothing = networkPolicySchema.parse({});
  expect(allowlistsOf(nothing, ["npm.example"])).toEqual({ outboundDomainAllowlist: [], outboundCidrAllowlist: [] });
  const some = networkPolicySchema.parse({ domains: ["a.example"], cidrs: ["192.0.2.0/24"], registries: true });
  const { outboundDomainAllowlist, outboundCidrAllowlist } = allowlistsOf(some, ["npm.example"]);
  expect(outboundDomainAllowlist).toEqual(expect.arrayContaining(["a.example", "registry.npmjs.org", "npm.example"]));
  expect(outboundCidrAllowlist).toEqual(["192.0.2.0/24"]);
});

test("a sandbox asks for what it may use, for its key alone, and ends itself after its lifetime", () => {
  const request = createSandboxSchema.parse({
    cpu: 1,
    memoryMb: 2048,
    ports: [3000, 5173],
    secrets: { TOKEN: "hidden" },
    labels: { build: "bld_1", long: "x".repeat(500) },
  });
  const run = { name: "sbx_1-ab", sandboxId: null, askedAt: 0, startedAt: null, link: null, previews: {} };
  const own = { imageId: "im-1", store: [], key: "00".repeat(32), environment: {}, run };
  const record = { ...recordFixture({ request, network: request.network, expiresAt: 5000 }), ...own };
  const tags = { "slipway-owner": "me" };
  const params = paramsOf({ record, run, tags, regions: ["us-east"], registries: [], programs: "abc" });
  expect(params).toMatchObject({
    name: run.name,
    cpu: 0.5,
    cpuLimit: 0.5,
    memoryMiB: 2048,
    memoryLimitMiB: 2048,
    regions: ["us-east"],
    encryptedPorts: [61_000, 61_001, 61_002],
    tags: { build: "bld_1", "slipway-owner": "me", "slipway-sandbox": record.id, "slipway-run": run.name },
    env: { SLIPWAY_LINK_UNTIL: String(5000 + graceMs), SLIPWAY_LINK_PREVIEWS: "61001=3000,61002=5173" },
  });
  expect(JSON.stringify(params)).not.toContain("hidden");
  expect(params.tags).not.toHaveProperty("long");
});
