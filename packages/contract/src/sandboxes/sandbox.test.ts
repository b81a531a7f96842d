import { describe, expect, test } from "vitest";
import { newId } from "../base/ids.ts";
import { createSandboxSchema, execRequestSchema, maxLifetimeMs } from "./sandbox.ts";

describe("a create", () => {
  test("of nothing has the defaults that the specification names", () => {
    expect(createSandboxSchema.parse({})).toMatchObject({
      image: "default",
      cpu: 2,
      memoryMb: 4096,
      processes: 512,
      diskMb: 10_240,
      lifetimeMs: 3_600_000,
      idleMs: 1_200_000,
      workdir: "/workspace",
      ports: [3000, 5173],
      user: "agent",
      onEnd: "stop",
      network: { domains: [], cidrs: [] },
    });
  });

  test("names all of its mistakes at once", () => {
    const { error } = createSandboxSchema.safeParse({
      cpu: 0,
      memoryMb: "a lot",
      ports: [0],
      workdir: "here",
      surprise: true,
    });
    expect(error?.issues.map(({ path, code }) => [path[0] ?? code])).toEqual([
      ["cpu"],
      ["memoryMb"],
      ["workdir"],
      ["ports"],
      ["unrecognized_keys"],
    ]);
  });

  test("shares no default with another", () => {
    const first = createSandboxSchema.parse({});
    first.ports.push(1);
    first.network.domains.push("example.com");
    first.env.A = "b";
    const second = createSandboxSchema.parse({});
    expect([second.ports, second.network.domains, second.env]).toEqual([[3000, 5173], [], {}]);
  });

  const bad: Record<string, unknown[]> = {
    image: [
      "",
      "Host",
      "node18",
      5,
      null,
      { base: "alpine" },
      { npm: ["a; b"] },
      { npm: [""] },
      { pip: ["-r x"] },
      { commands: [""] },
      { extra: 1 },
    ],
    snapshot: [newId("sbx"), "snp_", ""],
    cpu: [0, -1, 65, Number.NaN, Number.POSITIVE_INFINITY, "2"],
    memoryMb: [0, 31, 0.5, 1e9],
    diskMb: [0, 7],
    processes: [0, 15, 1e6],
    lifetimeMs: [0, 99, maxLifetimeMs + 1, 25 * 3_600_000],
    idleMs: [0, -1, "never"],
    sleepingMs: [0, null],
    checkpointMs: [0, 999],
    expiringGraceMs: [-1],
    onEnd: ["explode"],
    workdir: ["", "relative", "/a\0b", `/${"x".repeat(4096)}`],
    env: [{ "": "x" }, { "A=B": "x" }, { "1A": "x" }, { A: "b\0c" }, { A: 5 }],
    secrets: [{ "A B": "x" }],
    ports: [[0], [65_536], [1.5], ["80"], Array.from({ length: 65 }, (_, i) => i + 1)],
    labels: [{ a: 5 }, { a: "x".repeat(1025) }],
    user: ["nobody", 0],
    idempotencyKey: ["", "x".repeat(257)],
  };
  test.each(Object.entries(bad))("refuses each wrong %s", (field, values) => {
    for (const value of values)
      expect([value, createSandboxSchema.safeParse({ [field]: value }).success]).toEqual([value, false]);
  });
});

describe("an exec", () => {
  test("is an argv or a shell text, not both, not neither", () => {
    expect(execRequestSchema.safeParse({ argv: ["true"] }).success).toBe(true);
    expect(execRequestSchema.safeParse({ shell: "true" }).success).toBe(true);
    expect(execRequestSchema.safeParse({ argv: ["true"], shell: "true" }).success).toBe(false);
    expect(execRequestSchema.safeParse({}).success).toBe(false);
  });

  test("takes an argument of 64 KiB and an empty one", () => {
    expect(execRequestSchema.safeParse({ argv: ["echo", "x".repeat(65_536), ""] }).success).toBe(true);
  });

  test.each(
    Object.entries({
      id: [newId("sbx"), "exc_../..", ""],
      argv: [[], ["a\0b"], [5], ["x".repeat(128 * 1024)], Array.from({ length: 4097 }, () => "x")],
      cwd: ["", "a\0b", "x".repeat(4097)],
      env: [{ "A-B": "x" }],
      stdin: ["yes"],
      timeoutMs: [0, -1, 1.5],
      pty: [{ cols: 0, rows: 1 }, { cols: 80 }, { cols: 80, rows: 1001 }],
      background: ["true"],
      surprise: [1],
    }),
  )("refuses each wrong %s", (field, values) => {
    for (const value of values) {
      const request = { argv: ["true"], [field]: value };
      expect([value, execRequestSchema.safeParse(request).success]).toEqual([value, false]);
    }
  });
});
