import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { readText, run } from "../../../../run.ts";
import { type LocalSetup, setUpLocal } from "../../testing.ts";
import { type PipIndex, servePipIndex } from "./image-fixture.ts";

// Packages come from the network.
vi.setConfig({ testTimeout: 400_000 });

let index: PipIndex;
let local: LocalSetup;
const lines: string[] = [];
beforeAll(async () => {
  index = await servePipIndex();
  local = setUpLocal({ ...process.env, PIP_INDEX_URL: index.url, PIP_EXTRA_INDEX_URL: "" });
  await local.provider.prepareImage("debian", { onProgress: (line) => lines.push(line) });
}, 900_000);
afterAll(async () => {
  await local[Symbol.asyncDispose]();
  await index[Symbol.asyncDispose]();
});

test("debian is a root of its own, with the user agent, a workspace and the programs most images need", async () => {
  expect(lines).toContain("Configuring packages");
  await using sandbox = await local.provider.create({ image: "debian" });
  const programs = await run(sandbox, "id -un; touch here; pwd; for p in curl git python3 ps; do command -v $p; done");
  expect(programs.stdout).toBe("agent\n/workspace\n/usr/bin/curl\n/usr/bin/git\n/usr/bin/python3\n/usr/bin/ps\n");
  expect(await readText(sandbox.files, "/etc/os-release")).toContain("ID=debian");
  // Nothing of how it was made, and nothing of the host's /usr.
  expect(await run(sandbox, "ls -A /debootstrap /.root /usr/bin/bwrap /var/cache/apt/archives/*.deb")).toMatchObject({
    stdout: "",
  });
  const states = "dpkg --audit; dpkg --list | awk '/^[a-z]/ { print $1 }' | sort --unique";
  expect(await run(sandbox, states)).toMatchObject({ stdout: "ii\n" });
});

test("apt-get installs packages inside, whose services stay off, and keeps what the sandbox trusts", async () => {
  await using sandbox = await local.provider.create({ image: "debian", user: "root", network: { registries: true } });
  const install = "apt-get update && apt-get install --yes --no-install-recommends cron tree && update-ca-certificates";
  expect(await run(sandbox, install)).toMatchObject({ exitCode: 0 });
  expect(await run(sandbox, "tree --version; pgrep cron || echo no cron runs")).toMatchObject({
    stdout: expect.stringMatching(/^tree v[\s\S]*no cron runs\n$/),
  });
  const egress = await readText(sandbox.files, "/usr/local/share/ca-certificates/slipway-egress.crt");
  expect(await readText(sandbox.files, "/etc/ssl/certs/ca-certificates.crt")).toContain(egress.trim());
});

test("a custom image on debian has apt, npm and pip packages", async () => {
  const image = { base: "debian" as const, apt: ["tree"], npm: ["semver@7.7.1"], pip: ["slipway-probe"] };
  await using sandbox = await local.provider.create({ image });
  const used = "tree --version && semver 1.2.3 && python3 -c 'import slipway_probe; print(slipway_probe.origin)'";
  expect(await run(sandbox, used)).toMatchObject({
    stdout: expect.stringMatching(/^tree v.*\n1\.2\.3\nthe local index\n$/),
  });
});

test("a package that does not exist is told in apt's words", async () => {
  await expect(local.provider.prepareImage({ base: "debian", apt: ["no-such-package"] })).rejects.toMatchObject({
    code: "image_build_failed",
    message: expect.stringContaining("Unable to locate package no-such-package"),
  });
});
