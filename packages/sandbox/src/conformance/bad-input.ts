import {
  type CreateSandboxInput,
  type ErrorCode,
  type ExecRequestInput,
  type NetworkPolicyInput,
  newId,
} from "@slipway/contract";
import { describe, expect, test } from "vitest";
import { type Conformance, expectCode } from "./context.ts";
import { command } from "./programs.ts";

/** What a caller can get wrong. The types forbid much of it; callers are not always compiled. */
const badCreates: readonly (readonly [string, unknown, ErrorCode])[] = [
  ["an unknown image", { image: "no-such-image" }, "unknown_image"],
  ["an image of the wrong type", { image: 5 }, "unknown_image"],
  ["an unknown base of an image", { image: { base: "no-such-base" } }, "unknown_image"],
  ["a package with a shell character", { image: { npm: ["left-pad; rm -rf /"] } }, "invalid_request"],
  ["no processor", { cpu: 0 }, "invalid_limits"],
  ["too many processors", { cpu: 10_000 }, "invalid_limits"],
  ["negative memory", { memoryMb: -1 }, "invalid_limits"],
  ["memory that is not whole", { memoryMb: 100.5 }, "invalid_limits"],
  ["no disk", { diskMb: 0 }, "invalid_limits"],
  ["no processes", { processes: 0 }, "invalid_limits"],
  ["several impossible limits", { cpu: -1, memoryMb: 0 }, "invalid_limits"],
  ["a lifetime of 25 hours", { lifetimeMs: 25 * 3_600_000 }, "invalid_limits"],
  ["a lifetime of nothing", { lifetimeMs: 0 }, "invalid_limits"],
  ["port 0", { ports: [0] }, "invalid_port"],
  ["a port out of range", { ports: [70_000] }, "invalid_port"],
  ["a port that is a text", { ports: ["80"] }, "invalid_port"],
  ["an invalid range", { network: { cidrs: ["10.0.0.0/33"] } }, "invalid_network"],
  ["a range without a length", { network: { cidrs: ["10.0.0.0"] } }, "invalid_network"],
  ["an invalid domain", { network: { domains: ["exa mple.com"] } }, "invalid_network"],
  ["an address as domain", { network: { domains: ["127.0.0.1"] } }, "invalid_network"],
  [
    "a header with a line break",
    { network: { secrets: [{ host: "a.com", header: "x", value: "a\r\nb" }] } },
    "invalid_network",
  ],
  [
    "a header that frames the message",
    { network: { secrets: [{ host: "a.com", header: "Content-Length", value: "1" }] } },
    "invalid_network",
  ],
  ["a relative workdir", { workdir: "here" }, "invalid_request"],
  ["a NUL in the workdir", { workdir: "/a\0b" }, "invalid_request"],
  ["an invalid variable", { env: { "A=B": "c" } }, "invalid_request"],
  ["a NUL in a variable", { env: { A: "b\0c" } }, "invalid_request"],
  ["an unknown field", { immage: "host" }, "invalid_request"],
  ["an unknown user", { user: "nobody" }, "invalid_request"],
  ["a path as a tool", { tools: ["/usr"] }, "invalid_request"],
  ["a way out as a tool", { tools: [".."] }, "invalid_request"],
  ["a tool that is named twice", { tools: ["greeter", "greeter"] }, "invalid_request"],
  ["a snapshot that does not exist", { snapshot: newId("snp") }, "snapshot_not_found"],
  ["an id of another kind as snapshot", { snapshot: newId("sbx") }, "invalid_request"],
  ["mistakes of several kinds", { cpu: -1, ports: [0] }, "invalid_request"],
  ["nothing at all", null, "invalid_request"],
];

const badExecs: readonly (readonly [string, unknown])[] = [
  ["an empty argv", { argv: [] }],
  ["both argv and shell", { argv: ["true"], shell: "true" }],
  ["neither argv nor shell", {}],
  ["an empty shell text", { shell: "" }],
  ["a NUL in an argument", { argv: ["echo", "a\0b"] }],
  ["an argument past the kernel's limit", { argv: ["echo", "x".repeat(128 * 1024)] }],
  ["an id of another kind", { argv: ["true"], id: newId("sbx") }],
  ["an id that is a path", { argv: ["true"], id: "../../escape" }],
  ["a timeout of nothing", { argv: ["true"], timeoutMs: 0 }],
  ["a terminal without size", { argv: ["true"], pty: { cols: 0, rows: 0 } }],
  ["a NUL in the working directory", { argv: ["true"], cwd: "/a\0b" }],
  ["an invalid variable", { argv: ["true"], env: { "1A": "b" } }],
  ["an unknown field", { argv: ["true"], comand: "x" }],
];

export function describeBadInput(c: Conformance): void {
  describe("bad input", () => {
    for (const [name, request, code] of badCreates) {
      test(`a create with ${name} is refused as ${code} and leaves nothing`, async () => {
        const before = await ids(c);
        await expectCode(c.provider.create(request as CreateSandboxInput), code);
        expect(await ids(c)).toEqual(before);
      });
    }

    test("a refusal names every mistake at once", async () => {
      await expect(c.provider.create({ cpu: -1, memoryMb: 0, diskMb: 0.5 })).rejects.toThrow(/cpu.*memoryMb.*diskMb/s);
    });

    for (const [name, request] of badExecs) {
      test(`an exec with ${name} is refused and starts nothing`, async () => {
        const before = await c.shared.execs();
        await expectCode(c.shared.exec(request as ExecRequestInput), "invalid_request");
        expect((await c.shared.execs()).length).toBe(before.length);
      });
    }

    test("a network policy that is none is refused, and the old one stays", async () => {
      const { network } = await c.shared.info();
      await expectCode(c.shared.setNetwork({ cidrs: ["nonsense"] } as NetworkPolicyInput), "invalid_network");
      expect((await c.shared.info()).network).toEqual(network);
    });

    test("a failed create with a key can be made good under the same key", async () => {
      const idempotencyKey = newId("sbx");
      await expectCode(c.create({ idempotencyKey, snapshot: newId("snp") }), "snapshot_not_found");
      await using sandbox = await c.create({ idempotencyKey });
      expect(await sandbox.info()).toMatchObject({ state: "running" });
    });

    test("a fork with impossible limits is refused and leaves nothing", async () => {
      const before = await ids(c);
      await expectCode(c.shared.fork({ cpu: -1 }), "invalid_limits");
      expect(await ids(c)).toEqual(before);
    });
  });

  describe("what the provider lacks is refused, not faked", () => {
    const { capabilities } = c;
    const lacking: [keyof typeof capabilities, () => Promise<unknown>][] = [
      ["gpu", () => c.create({ gpu: "T4" })],
      ["customImages", () => c.create({ image: { commands: ["true"] } })],
      ["customImages", () => c.provider.prepareImage({ commands: ["true"] })],
      ["egressAllowlist", () => c.create({ network: { domains: ["example.com"] } })],
      ["egressSecrets", () => c.create({ network: { secrets: [{ host: "example.com", header: "x", value: "y" }] } })],
      ["egressForwards", () => c.create({ network: { forwards: [{ port: 9000, to: "example.com:9000" }] } })],
      ["egressPorts", () => c.create({ network: { domains: ["example.com"], ports: [22] } })],
      ["rootUser", () => c.create({ user: "root" })],
      ["tools", () => c.create({ tools: ["greeter"] })],
      ["hostChannel", () => c.shared.openChannel()],
      ["pty", () => c.shared.exec({ ...command("exit", "0"), pty: { cols: 80, rows: 24 } })],
    ];
    for (const [capability, call] of lacking) {
      if (capabilities[capability]) continue;
      test(`${capability}: ${String(call).slice(6).replace(/\s+/g, " ")}`, async () => {
        const before = await ids(c);
        await expectCode(call(), "capability_missing");
        expect(await ids(c)).toEqual(before);
      });
    }
  });
}

async function ids(c: Conformance): Promise<string[]> {
  return (await c.provider.list()).map(({ id }) => id).sort();
}
