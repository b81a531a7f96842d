import { readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { hostRegistries } from "../../../../host-registries.ts";
import type { SandboxProvider } from "../../../../provider.ts";
import { readText, run } from "../../../../run.ts";
import { createLocalProvider } from "../../index.ts";
import { layoutOf } from "../../layout.ts";
import { keepersOf, type LocalSetup, setUpLocal } from "../../testing.ts";
import { type PipIndex, servePipIndex } from "./image-fixture.ts";

const buildMs = 400_000;
let index: PipIndex;
let local: LocalSetup;
beforeAll(async () => {
  index = await servePipIndex();
  local = setUpLocal({ ...process.env, PIP_INDEX_URL: index.url, PIP_EXTRA_INDEX_URL: "" });
});
afterAll(async () => {
  await local[Symbol.asyncDispose]();
  await index[Symbol.asyncDispose]();
});

/** Everything that a build could leave: sandboxes, their directories, layers. */
async function traces(): Promise<{ sandboxes: number; boxes: string[]; layers: string[] }> {
  const layout = layoutOf(local.stateDir);
  await local.provider.reconcile();
  return {
    sandboxes: (await local.provider.list()).length,
    boxes: readdirSync(layout.boxes),
    layers: readdirSync(layout.layers).sort(),
  };
}

/** Ends the keeper, and answers when it is gone. */
async function endKeeper(): Promise<void> {
  for (const pid of keepersOf(local.stateDir)) process.kill(pid, "SIGKILL");
  await vi.waitFor(() => expect(keepersOf(local.stateDir)).toEqual([]));
}

async function linesOf(provider: SandboxProvider, image: Parameters<SandboxProvider["prepareImage"]>[0]) {
  const lines: string[] = [];
  await provider.prepareImage(image, { onProgress: (line) => lines.push(line) });
  return lines;
}

describe("the image node24", () => {
  test(
    "has node, npm and pnpm, which install packages from the host's registry",
    async () => {
      expect(await linesOf(local.provider, "node24")).toContain("v24.21.0");
      await using sandbox = await local.provider.create({ image: "node24", network: { registries: true } });
      const versions = await run(
        sandbox,
        "node --version && npm --version && npx --version && pnpm --version && pnpx --help",
      );
      expect(versions).toMatchObject({
        exitCode: 0,
        stdout: expect.stringMatching(/^v24\.21\.0\n11\.\S+\n11\.\S+\n10\./),
      });
      expect(
        await run(sandbox, "npm init --yes && npm install is-number && node -p 'require(\"is-number\")(7)'"),
      ).toMatchObject({
        exitCode: 0,
        stdout: expect.stringMatching(/true\n$/),
      });
      expect(
        await run(sandbox, "mkdir ../tmp/p && cd ../tmp/p && pnpm add is-number && ls node_modules"),
      ).toMatchObject({
        exitCode: 0,
        stdout: expect.stringMatching(/is-number\n$/),
      });
      expect(await run(sandbox, "npm install --global semver && semver 1.2.3")).toMatchObject({ exitCode: 0 });
    },
    buildMs,
  );

  test("is built once, also for keepers to come", async () => {
    await endKeeper();
    expect(await linesOf(local.provider, "node24")).toEqual([]);
  });

  test("goes on when the host's settings change, which its sandboxes see", async () => {
    await endKeeper();
    const environment = { ...process.env, PIP_INDEX_URL: "https://changed.example/simple" };
    {
      await using changed = createLocalProvider({ stateDir: local.stateDir, environment });
      expect(await linesOf(changed, "node24")).toEqual([]);
      await using sandbox = await changed.create({ image: "node24" });
      expect(await readText(sandbox.files, "/etc/pip.conf")).toContain("https://changed.example/simple");
      expect(await run(sandbox, "node --version")).toMatchObject({ stdout: "v24.21.0\n" });
    }
    await endKeeper();
  });
});

describe("a custom image", () => {
  test(
    "has its npm and pip packages, and what its commands did in their order as root",
    async () => {
      const image = {
        base: "host" as const,
        npm: ["semver@7.7.1"],
        pip: ["slipway-probe==1.0"],
        commands: [
          "id -u > /opt/who && chmod 600 /opt/who && chown 1000:1000 /opt/who",
          "cat /opt/who /proc/sys/kernel/random/uuid > /opt/made",
        ],
      };
      // Two that ask at once share one build.
      const [first, second] = await Promise.all([local.provider.create({ image }), local.provider.create({ image })]);
      await using sandbox = first;
      await using other = second;
      expect(
        await run(sandbox, "semver 1.2.3 && python3 -c 'import slipway_probe; print(slipway_probe.origin)'"),
      ).toMatchObject({
        stdout: "1.2.3\nthe local index\n",
      });
      const made = await readText(sandbox.files, "/opt/made");
      expect(made).toMatch(/^0\n[0-9a-f-]{36}\n$/);
      expect(await readText(other.files, "/opt/made")).toBe(made);
      // Whatever owner its commands name, the files belong to the user of each sandbox.
      expect(await run(sandbox, "cat /opt/who; id -un; ls -A /tmp /var/tmp /root")).toMatchObject({
        stdout: "0\nagent\n/root:\n\n/tmp:\n\n/var/tmp:\n",
      });
    },
    buildMs,
  );

  test("that adds nothing is its base", async () => {
    const before = await traces();
    await local.provider.prepareImage({ base: "host" });
    expect(await traces()).toEqual(before);
  });

  test("reaches the registries while it is built and nothing else", async () => {
    const image = { commands: ["curl --silent --show-error --fail http://elsewhere.invalid/"] };
    await expect(local.provider.prepareImage(image)).rejects.toMatchObject({ code: "image_build_failed" });
  });

  test("with apt packages needs the base debian", async () => {
    const refused = { code: "invalid_request", message: expect.stringContaining("debian") };
    await expect(local.provider.prepareImage({ base: "node24", apt: ["jq"] })).rejects.toMatchObject(refused);
    await expect(local.provider.create({ image: { apt: ["jq"] } })).rejects.toMatchObject(refused);
  });
});

describe("a build", () => {
  test("that fails says which command did, in the program's last words, and leaves nothing", async () => {
    const before = await traces();
    const image = { commands: ["echo fine", "seq 1 500; printf '\\033[31mlast words' >&2; exit 7"] };
    const failure = await local.provider.prepareImage(image).catch((error: Error) => error);
    expect(failure).toMatchObject({ code: "image_build_failed" });
    const { message } = failure as Error;
    expect(message).toMatch(/^Command `seq 1 500; .*` failed with exit code 7:\n/);
    expect(message).toMatch(/\n500\nlast words$/);
    expect(message).not.toContain("\n400\n");
    expect(await traces()).toEqual(before);
  });

  test("is given up with the create that waits for it, and leaves nothing", async () => {
    const before = await traces();
    const controller = new AbortController();
    const created = local.provider.create({ image: { commands: ["sleep 1000"] } }, { signal: controller.signal });
    for await (const event of local.provider.events({ signal: AbortSignal.timeout(100_000) })) {
      const started = event.type === "sandbox.state_changed" && event.to === "running";
      if (started && (await local.provider.list()).some(({ id }) => id === event.sandbox)) break;
    }
    controller.abort();
    await expect(created).rejects.toMatchObject({ code: "aborted" });
    await vi.waitFor(async () => expect(await traces()).toEqual(before));
  });

  test("whose sandbox is ended fails, and says so", async () => {
    const image = { commands: ["echo begun; sleep 1000"] };
    const onProgress = async (line: string) => {
      if (line !== "begun") return;
      for (const { id } of await local.provider.list()) await (await local.provider.get(id)).destroy();
    };
    await expect(local.provider.prepareImage(image, { onProgress })).rejects.toMatchObject({
      code: "image_build_failed",
      message: expect.stringContaining("has ended"),
    });
  });

  test("that its keeper's death cuts short is ended by the next keeper, which builds anew", async () => {
    const before = await traces();
    const controller = new AbortController();
    let begun = 0;
    const onProgress = (line: string) => {
      if (line !== "begun") return;
      begun += 1;
      if (begun === 1) for (const pid of keepersOf(local.stateDir)) process.kill(pid, "SIGKILL");
      else controller.abort();
    };
    const image = { commands: ["echo begun; sleep 1000"] };
    const prepared = local.provider.prepareImage(image, { onProgress, signal: controller.signal });
    await expect(prepared).rejects.toMatchObject({ code: "aborted" });
    expect(begun).toBe(2);
    await vi.waitFor(async () => expect(await traces()).toEqual(before));
  });
});

test("programs inside trust the egress where it adds a secret", async () => {
  const { settings } = await hostRegistries({
    home: process.env.HOME ?? "/",
    environment: process.env,
    cacheFile: join(tmpdir(), `slipway-registries-${process.pid}.json`),
  });
  const { host } = new URL(settings.npm.registry ?? "");
  await using sandbox = await local.provider.create({
    image: "node24",
    network: { registries: true, secrets: [{ host, header: "x-slipway", value: "added" }] },
  });
  const url = `https://${host}/is-number`;
  const curl = await run(sandbox, [
    "curl",
    "--silent",
    "--show-error",
    "--verbose",
    "--output",
    "/dev/null",
    "--fail",
    url,
  ]);
  expect(curl).toMatchObject({ exitCode: 0, stderr: expect.stringMatching(/issuer: CN=Slipway sandbox egress/) });
  const node = `fetch(${JSON.stringify(url)}).then((answer) => console.log(answer.status))`;
  expect(await run(sandbox, ["node", "--eval", node])).toMatchObject({ stdout: "200\n" });
  const python = `import urllib.request; print(urllib.request.urlopen(${JSON.stringify(url)}).status)`;
  expect(await run(sandbox, ["python3", "-c", python])).toMatchObject({ stdout: "200\n" });
  const git = await run(sandbox, ["git", "ls-remote", url]);
  expect(git.stderr).toMatch(/not found|not valid|404|403/);
});
