import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { readDebianSources } from "./debian-sources.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "slipway-root-"));
});

function file(path: string, content: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), content);
}

const debian = 'ID=debian\nVERSION_CODENAME="bookworm"\n';
const debootstrap = 'DEF_MIRROR="http://default.example/debian"\nDEF_HTTPS_MIRROR="https://default.example/debian"\n';

test("a Debian host's own archive is taken over, from both kinds of files and without credentials", async () => {
  file("etc/os-release", debian);
  file(
    "etc/apt/sources.list.d/debian.sources",
    `Types: deb
# a comment
URIs: http://user:secret@deb.example/debian
Suites: bookworm
  bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb-src
URIs: http://deb.example/debian
Suites: bookworm
Components: main
`,
  );
  file(
    "etc/apt/sources.list",
    "# deb http://commented.example/ bookworm main\ndeb [arch=amd64] https://security.example/debian bookworm-security main # really\n",
  );
  expect(await readDebianSources(root)).toEqual({
    suite: "bookworm",
    mirror: "http://deb.example/debian",
    archives: ["https://security.example/debian", "http://deb.example/debian", "http://deb.example/debian"],
    lines: [
      "deb https://security.example/debian bookworm-security main",
      "deb http://deb.example/debian bookworm main contrib",
      "deb http://deb.example/debian bookworm-updates main contrib",
    ],
  });
});

test("other archives of the host stay out, and so does what is turned off", async () => {
  file("etc/os-release", debian);
  file("usr/sbin/debootstrap", debootstrap);
  file("etc/apt/sources.list.d/engine.list", "deb https://engine.example/linux/debian bookworm stable\n");
  file("etc/apt/sources.list.d/database.list", "deb https://database.example/apt bookworm-pgdg main\n");
  file("etc/apt/sources.list.d/mirror.list.disabled", "deb https://disabled.example/debian bookworm main\n");
  file(
    "etc/apt/sources.list.d/off.sources",
    "Enabled: no\nTypes: deb\nURIs: https://off.example/debian\nSuites: bookworm\nComponents: main\n",
  );
  expect(await readDebianSources(root)).toMatchObject({ suite: "bookworm", mirror: null });
});

test("on a host that is not Debian, debootstrap's own default counts", async () => {
  file("etc/os-release", "ID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=noble\n");
  file("etc/apt/sources.list", "deb http://ubuntu.example/ubuntu noble main\n");
  file("usr/sbin/debootstrap", debootstrap);
  expect(await readDebianSources(root)).toEqual({
    suite: "stable",
    mirror: null,
    archives: ["https://default.example/debian"],
    lines: ["deb https://default.example/debian stable main"],
  });
});

test("a host without apt and debootstrap has no sources, which is an error only when debian is asked for", async () => {
  expect(await readDebianSources(root)).toEqual({ suite: "stable", mirror: null, archives: [], lines: [] });
});
