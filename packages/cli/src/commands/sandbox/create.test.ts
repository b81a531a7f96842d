import { SlipwayError } from "@slipway/contract";
import { parseCreate } from "@slipway/sandbox";
import { fakeCapabilities } from "@slipway/sandbox/testing/provider";
import { describe, expect, test } from "vitest";
import { runCli } from "../../testing/run-cli.ts";
import { addSandbox, createStubProvider } from "../../testing/stub-provider.ts";

async function createWith(words: readonly string[], env: Record<string, string> = {}) {
  const provider = createStubProvider();
  const run = await runCli(["sandbox", "create", ...words], { provider, env });
  return { ...run, request: provider.created[0], provider };
}

describe("create", () => {
  test("prints the id and nothing else", async () => {
    const { code, stdout, stderr, provider } = await createWith([]);
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: `${[...provider.infos.keys()][0]}\n`, stderr: "" });
  });

  test("--json prints the sandbox", async () => {
    const { stdout, provider } = await createWith(["--json"]);
    expect(JSON.parse(stdout)).toEqual([...provider.infos.values()][0]);
  });

  test("lifetime and idle time come from the settings", async () => {
    const env = { MODAL_SANDBOX_TTL: "7200", MODAL_SANDBOX_INACTIVITY_MINUTES: "30" };
    expect((await createWith([], env)).request).toEqual({ lifetimeMs: 7_200_000, idleMs: 1_800_000 });
  });

  test("a short lifetime shortens an idle time that nobody asked for", async () => {
    expect((await createWith(["--lifetime", "5m"])).request).toEqual({ lifetimeMs: 300_000, idleMs: 300_000 });
  });

  test("every option reaches the request", async () => {
    const words =
      "--cpu 0.5 --memory 2g --disk 512 --processes 64 --lifetime 2h --idle never --sleeping 1h --checkpoint 5m --grace 10s " +
      "--on-end destroy --net example.com,*.example.org --net 192.0.2.0/24,198.51.100.7 --registries --net-port 443 " +
      "--inject api.example.com:authorization=env:TOKEN --tunnel 5432=db.example.com:5432 --env A=1 --secret TOKEN " +
      "--port 3000,8080 --workdir /srv --name web --label team=a --user root --idempotency-key k1";
    const { request, code } = await createWith(words.split(" "), { TOKEN: "t0k" });
    expect(code).toBe(0);
    expect(request).toEqual({
      cpu: 0.5,
      memoryMb: 2048,
      diskMb: 512,
      processes: 64,
      lifetimeMs: 7_200_000,
      idleMs: null,
      sleepingMs: 3_600_000,
      checkpointMs: 300_000,
      expiringGraceMs: 10_000,
      onEnd: "destroy",
      network: {
        domains: ["example.com", "*.example.org"],
        cidrs: ["192.0.2.0/24", "198.51.100.7/32"],
        registries: true,
        ports: [443],
        secrets: [{ host: "api.example.com", header: "authorization", value: "t0k" }],
        forwards: [{ port: 5432, to: "db.example.com:5432" }],
      },
      env: { A: "1" },
      secrets: { TOKEN: "t0k" },
      ports: [3000, 8080],
      workdir: "/srv",
      labels: { team: "a", name: "web" },
      user: "root",
      idempotencyKey: "k1",
    });
  });

  test("packages make a custom image, built with progress before the create", async () => {
    const built: unknown[] = [];
    const provider = createStubProvider({
      async prepareImage(image, options) {
        built.push(image);
        options?.onProgress?.("installing ripgrep");
      },
    });
    const words = ["sandbox", "create", "--image", "debian", "--apt", "ripgrep,jq", "--run", "echo a, b"];
    const { code, stdout, stderr } = await runCli(words, { provider });
    const image = { base: "debian", apt: ["ripgrep", "jq"], commands: ["echo a, b"] };
    expect({ code, stderr }).toEqual({ code: 0, stderr: "installing ripgrep\n" });
    expect(stdout).toMatch(/^sbx_\w+\n$/);
    expect(built).toEqual([image]);
    expect(provider.created[0]).toMatchObject({ image });
  });

  test.each([
    ["--memory 1", "--memory: 1 MB is less than 32 MB."],
    ["--lifetime 25h", "--lifetime: 1d 1h is more than 1d."],
    ["--idle 50ms", "--idle: 50ms is less than 100ms."],
    ["--cpu 0 --processes 5", "--cpu: 0 is less than 0.1. --processes: 5 is less than 16."],
    ["--net exa_mple.com", '--net: "exa_mple.com": expected a domain such as example.com or *.example.com.'],
    ["--net 10.0.0.0/99", '--net: "10.0.0.0/99": '],
    ["--workdir here", "--workdir: expected an absolute path."],
    ["--env 1A=x", "--env: "],
  ])("a refusal of %s names the option and its units", async (words, expected) => {
    const provider = createStubProvider({
      create: async (request) => void parseCreate(request, fakeCapabilities) as never,
    });
    const { code, stderr } = await runCli(["sandbox", "create", ...words.split(" ")], { provider });
    expect(code).toBe(125);
    expect(stderr).toContain(`error: ${expected}`);
    expect(stderr).not.toMatch(/Mb|Ms\b|network\./);
  });

  test("a refusal that is not about the request is told as it is", async () => {
    const create = () => Promise.reject(new SlipwayError("invalid_request", "tools: there is no such tool"));
    const { stderr } = await runCli(["sandbox", "create"], { provider: createStubProvider({ create }) });
    expect(stderr).toContain("error: tools: there is no such tool\n");
  });

  test("a snapshot excludes an image", async () => {
    const { code, stderr } = await createWith(["--snapshot", "x", "--image", "debian"]);
    expect(code).toBe(125);
    expect(stderr).toContain("cannot be combined with an image");
  });
});

describe("fork", () => {
  test("takes over the labels but the name, and passes on what is changed", async () => {
    const forks: unknown[] = [];
    const provider = createStubProvider();
    provider.sandbox = {
      async fork(overrides) {
        forks.push(overrides);
        return provider.create({});
      },
    };
    addSandbox(provider, { labels: { name: "web", team: "a" } });
    const { code, stdout } = await runCli(["sandbox", "fork", "web", "--name", "web2", "--cpu", "1"], { provider });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^sbx_\w+\n$/);
    expect(forks).toEqual([{ cpu: 1, labels: { team: "a", name: "web2" } }]);
  });
});

describe("an image that is built ahead", () => {
  const build = async (...words: string[]) => {
    const built: unknown[] = [];
    const provider = createStubProvider({ prepareImage: async (image) => void built.push(image) });
    return { ...(await runCli(["sandbox", "image", "build", ...words], { provider })), built };
  };

  test("is named by an argument or by --image", async () => {
    expect(await build("node24")).toMatchObject({ code: 0, built: ["node24"] });
    expect(await build("--image", "node24")).toMatchObject({ code: 0, built: ["node24"] });
    expect(await build("debian", "--apt", "jq")).toMatchObject({ built: [{ base: "debian", apt: ["jq"] }] });
  });

  test("is named once", async () => {
    expect(await build("node24", "--image", "node22")).toMatchObject({ code: 125, built: [] });
    expect((await build()).stderr).toContain("No image is named.");
  });
});

describe("keep-alive", () => {
  const keepAlive = async (duration: string, leftMs: number) => {
    const keep = async () => ({ expiresAt: Date.now() + leftMs });
    const provider = createStubProvider({}, { keepAlive: keep });
    addSandbox(provider, { labels: { name: "box" } });
    return await runCli(["sandbox", "keep-alive", "box", duration], { provider });
  };

  test("refuses what no sandbox can have", async () => {
    expect(await keepAlive("25h", 0)).toMatchObject({
      code: 125,
      stderr: expect.stringContaining("more than 24 hours"),
    });
  });

  test("tells when the sandbox ends sooner than requested, and only then", async () => {
    expect((await keepAlive("20h", 3_600_000)).stderr).toContain("sooner than requested");
    expect((await keepAlive("1h", 3_600_000)).stderr).toBe("");
  });
});
