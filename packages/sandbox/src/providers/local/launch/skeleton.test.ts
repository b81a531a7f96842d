import { chmodSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { hostRegistries, hostsOf, readPackageSettings } from "../../../host-registries.ts";
import { baseEnvironment } from "./skeleton.ts";
import { skeletonEntries } from "./skeleton-entries.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "slipway-root-"));
});

function file(path: string, content: string, mode = 0o644): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), content);
  chmodSync(join(root, path), mode);
}

const environment = {};
const textOf = (entries: Awaited<ReturnType<typeof skeletonEntries>>, path: string) => {
  const entry = entries.find((candidate) => candidate.path === path);
  return entry?.type === "file" ? Buffer.from(entry.content).toString() : null;
};

test("the skeleton takes over what programs need and nothing that is closed to others", async () => {
  file("etc/passwd", "root:x:0:0::/root:/bin/sh\nsomebody:x:1001:1001::/home/somebody:/bin/sh\n");
  file("etc/shadow", "secret", 0o600);
  file("etc/ssh/ssh_host_key", "secret", 0o600);
  file("etc/fonts/fonts.conf", "<fontconfig/>");
  file("etc/fonts/closed.conf", "secret", 0o600);
  file("etc/chromium/policies/enrollment/token", "secret");
  file("etc/ssl/private/key.pem", "secret");
  file("usr/local/share/ca-certificates/own.crt", "own certificate");
  mkdirSync(join(root, "etc/ssl/certs"));
  symlinkSync("../../../usr/local/share/ca-certificates/own.crt", join(root, "etc/ssl/certs/own.pem"));
  symlinkSync("own.pem", join(root, "etc/ssl/certs/12345678.0"));
  symlinkSync("usr/bin", join(root, "bin"));
  const settings = await readPackageSettings({ home: "/nowhere", environment, root });
  const entries = await skeletonEntries({ settings, egressCa: "egress", root });
  expect(textOf(entries, "etc/fonts/fonts.conf")).toBe("<fontconfig/>");
  expect(textOf(entries, "etc/ssl/certs/own.pem")).toBe("own certificate");
  expect(entries).toContainEqual({ type: "symlink", path: "etc/ssl/certs/12345678.0", target: "own.pem" });
  expect(entries).toContainEqual({ type: "symlink", path: "bin", target: "usr/bin" });
  expect(textOf(entries, "etc/passwd")).not.toContain("somebody");
  expect(entries.filter((entry) => entry.type === "file" && Buffer.from(entry.content).includes("secret"))).toEqual([]);
});

test("package settings are taken over without credentials", async () => {
  file(
    "etc/npmrc",
    "registry=https://npm.example/path/\ncafile=/etc/own-ca.pem\n//npm.example/path/:_authToken=token-value\n@team:registry=https://user:pass@team.example/\n",
  );
  file("etc/own-ca.pem", "bundle");
  file(
    "etc/pip.conf",
    "[global]\nindex-url = https://me:pass@pip.example/simple\nextra-index-url =\n    https://more.example/simple\n",
  );
  file("etc/apt/sources.list.d/one.sources", "Types: deb\nURIs: http://deb.example/debian\nSuites: stable\n");
  file(
    "etc/apt/sources.list",
    "deb [signed-by=/k.gpg] https://old.example/debian stable main\n# deb https://commented.example/ x y\n",
  );
  const inputs = { home: "/nowhere", environment, root, cacheFile: join(root, "cache.json") };
  const { settings, hosts } = await hostRegistries(inputs);
  expect(hosts).toEqual(["deb.example", "more.example", "npm.example", "old.example", "pip.example", "team.example"]);
  const entries = await skeletonEntries({ settings, egressCa: "egress", root });
  const npmrc = textOf(entries, "etc/npmrc");
  expect(npmrc).toBe(
    "registry=https://npm.example/path/\n@team:registry=https://team.example/\ncafile=/etc/ssl/certs/ca-certificates.crt\nprefix=/usr/local\nupdate-notifier=false\n",
  );
  expect(textOf(entries, "etc/pip.conf")).toContain(
    "index-url = https://pip.example/simple\nextra-index-url = https://more.example/simple\n",
  );
  expect(
    JSON.stringify(entries.map((entry) => (entry.type === "file" ? Buffer.from(entry.content).toString() : ""))),
  ).not.toMatch(/token-value|pass@/);
});

test("inside, programs trust the host's authorities, those its settings name, and the egress", async () => {
  file("etc/ssl/certs/ca-certificates.crt", "public authorities\n");
  file("etc/npmrc", "cafile=/etc/own-ca.pem\n");
  file("etc/own-ca.pem", "own authority");
  file("etc/pip.conf", "[global]\ncert = /etc/closed.pem\n");
  file("etc/closed.pem", "closed to others", 0o600);
  const settings = await readPackageSettings({ home: "/nowhere", environment, root });
  const entries = await skeletonEntries({ settings, egressCa: "egress authority\n", root });
  expect(textOf(entries, "etc/ssl/certs/ca-certificates.crt")).toBe(
    "public authorities\nown authority\negress authority\n",
  );
});

test("a registry on an unusual port is named with it", () => {
  expect(hostsOf(["https://npm.example/", "http://pip.example:3141/simple", "https://npm.example/other/"])).toEqual([
    "npm.example",
    "pip.example:3141",
  ]);
});

test("variables count more than files, and a user's file more than the system's", async () => {
  file("etc/npmrc", "registry=https://system.example/\n");
  file("home/.npmrc", "registry=https://user.example/\n");
  const home = join(root, "home");
  expect((await readPackageSettings({ home, environment, root })).npm.registry).toBe("https://user.example/");
  const asked = { npm_config_registry: "https://variable.example/" };
  expect((await readPackageSettings({ home, environment: asked, root })).npm.registry).toBe(
    "https://variable.example/",
  );
});

test("what no file says is remembered from the programs' own answer", async () => {
  const cacheFile = join(root, "cache.json");
  writeFileSync(cacheFile, JSON.stringify({ npm: "https://default.example/", pip: ["https://pip.example/"] }));
  const { hosts } = await hostRegistries({ home: "/nowhere", environment, root, cacheFile });
  expect(hosts).toEqual(["default.example", "pip.example"]);
});

test("commands are told of the proxy", () => {
  expect(baseEnvironment("root")).toMatchObject({
    HOME: "/root",
    HTTPS_PROXY: "http://127.0.0.1:3128",
    // With brackets around the last, Python's httpx does not start.
    NO_PROXY: "localhost,127.0.0.1,::1",
    no_proxy: "localhost,127.0.0.1,::1",
  });
});
