import { readdir, readFile, readlink, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import type { PackageSettings } from "./host-registries.ts";

/** One entry of the skeleton; directories come before what is in them. */
export type SkeletonEntry =
  | { readonly type: "directory"; readonly path: string; readonly mode: number }
  | { readonly type: "file"; readonly path: string; readonly mode: number; readonly content: Uint8Array }
  | { readonly type: "symlink"; readonly path: string; readonly target: string };

/** The lowest layer of the `host` image: a made-up root beside the host's /usr. `root` is the host's. */
export async function skeletonEntries(settings: PackageSettings, root = "/"): Promise<SkeletonEntry[]> {
  const copied = await Promise.all([
    ...rootLinks.map((name) => copyLink(root, name)),
    ...copiedFiles.map((name) => copyFile(root, `etc/${name}`)),
    ...(await namesOfTrees(root)).map((name) => copyTree(root, `etc/${name}`)),
    copyCertificates(root),
    copyHostCa(root, settings),
  ]);
  return [...directories(), ...copied.flat(), ...madeUp(settings)];
}

const rootLinks = ["bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/** Settings of programs in /usr that do not work, or work differently, without them. None is the host's own business. */
const copiedFiles = [
  "bash.bashrc",
  "debian_version",
  "inputrc",
  "ld.so.cache",
  "ld.so.conf",
  "locale.alias",
  "magic",
  "magic.mime",
  "mime.types",
  "protocols",
  "services",
  "ssl/openssl.cnf",
];
const copiedTrees = /^(alternatives|chromium|chromium\.d|fonts|ld\.so\.conf\.d|vim|java-\d+-openjdk|python3(\.\d+)?)$/;
/** May name the owner of the machine, or hold what enrols it. */
const neverCopied = new Set(["policies", "private", "native-messaging-hosts"]);

function directories(): SkeletonEntry[] {
  const open = [
    "dev",
    "etc",
    "etc/ssl",
    "etc/ssl/certs",
    "home",
    "home/agent",
    "media",
    "mnt",
    "opt",
    "proc",
    "run",
    "srv",
    "sys",
    "usr",
    "usr/etc",
    "usr/local",
  ];
  const local = ["bin", "etc", "include", "lib", "sbin", "share", "src"].map((name) => `usr/local/${name}`);
  const variable = ["var", "var/cache", "var/lib", "var/log", "var/spool", "workspace"];
  return [
    ...[...open, ...local, ...variable].map((path) => ({ type: "directory", path, mode: 0o755 }) as const),
    { type: "directory", path: "root", mode: 0o700 },
    { type: "directory", path: "tmp", mode: 0o1777 },
    { type: "directory", path: "var/tmp", mode: 0o1777 },
  ];
}

function madeUp(settings: PackageSettings): SkeletonEntry[] {
  const npmrc = npmrcText(settings);
  const text = (path: string, content: string): SkeletonEntry => ({
    type: "file",
    path,
    mode: 0o644,
    content: Buffer.from(content),
  });
  const link = (path: string, target: string): SkeletonEntry => ({ type: "symlink", path, target });
  return [
    text(
      "etc/passwd",
      "root:x:0:0:root:/root:/bin/bash\nagent:x:1000:1000:agent:/home/agent:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    ),
    text("etc/group", "root:x:0:\ntty:x:5:\nagent:x:1000:\nnogroup:x:65534:\n"),
    text("etc/hosts", "127.0.0.1 localhost slipway\n::1 localhost\n"),
    text("etc/hostname", "slipway\n"),
    text("etc/host.conf", "multi on\n"),
    text("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\nservices: files\nprotocols: files\n"),
    text("etc/machine-id", "5119a7a55119a7a55119a7a55119a7a5\n"),
    text("etc/shells", "/bin/sh\n/bin/bash\n"),
    text("etc/timezone", "Etc/UTC\n"),
    text(
      "etc/gitconfig",
      "[user]\n\tname = agent\n\temail = agent@slipway.invalid\n[init]\n\tdefaultBranch = main\n[safe]\n\tdirectory = *\n",
    ),
    text(
      "etc/profile",
      '[ -n "$PATH" ] || export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\numask 022\n',
    ),
    text("etc/pip.conf", pipText(settings)),
    // npm reads the one beside the Node that runs it.
    ...["etc/npmrc", "usr/etc/npmrc", "usr/local/etc/npmrc"].map((path) => text(path, npmrc)),
    text("usr/etc/empty", ""),
    link("etc/localtime", "/usr/share/zoneinfo/Etc/UTC"),
    link("etc/mtab", "/proc/self/mounts"),
    link("etc/os-release", "../usr/lib/os-release"),
    link("var/run", "/run"),
    link("var/lock", "/run/lock"),
  ];
}

/** The host's trust store inside, also where the programs' settings name another file. */
export const caBundlePath = "/etc/ssl/certs/ca-certificates.crt";
const hostCaPath = "etc/ssl/certs/slipway-host-ca.pem";

function npmrcText({ npm }: PackageSettings): string {
  const registries = [["registry", npm.registry], ...Object.entries(npm.scopes)].filter(([, url]) => url !== null);
  const ca = npm.caFile === null ? [] : [["cafile", `/${hostCaPath}`]];
  return [...registries, ...ca].map(([key, value]) => `${key}=${value}\n`).join("");
}

function pipText({ pip }: PackageSettings): string {
  const [index, ...extra] = pip.indexUrls;
  const lines = [
    index === undefined ? null : `index-url = ${index}`,
    extra.length === 0 ? null : `extra-index-url = ${extra.join(" ")}`,
    pip.caFile === null ? null : `cert = ${caBundlePath}`,
    "break-system-packages = true",
  ];
  return `[global]\n${lines
    .filter((line) => line !== null)
    .map((line) => `${line}\n`)
    .join("")}`;
}

async function copyHostCa(root: string, { npm }: PackageSettings): Promise<SkeletonEntry[]> {
  const content = npm.caFile === null ? null : await readShared(join(root, npm.caFile));
  return content === null ? [] : [{ type: "file", path: hostCaPath, mode: 0o644, content }];
}

/** Links that lead out of the directory are followed: what they lead to may not be visible inside. */
async function copyCertificates(root: string): Promise<SkeletonEntry[]> {
  const directory = "etc/ssl/certs";
  const entries = await readdir(join(root, directory), { withFileTypes: true }).catch(() => []);
  const copied = entries.map(async (entry): Promise<SkeletonEntry[]> => {
    const path = `${directory}/${entry.name}`;
    const target = entry.isSymbolicLink() ? await readlink(join(root, path)) : null;
    return target !== null && target === basename(target) ? [{ type: "symlink", path, target }] : copyFile(root, path);
  });
  return (await Promise.all(copied)).flat();
}

async function namesOfTrees(root: string): Promise<string[]> {
  const names = await readdir(join(root, "etc"));
  return names.filter((name) => copiedTrees.test(name)).sort();
}

async function copyTree(root: string, path: string): Promise<SkeletonEntry[]> {
  const entries = await readdir(join(root, path), { withFileTypes: true }).catch(() => null);
  if (entries === null) return [];
  const copied = entries
    .filter(({ name }) => !neverCopied.has(name))
    .map((entry): Promise<SkeletonEntry[]> => {
      const child = `${path}/${entry.name}`;
      if (entry.isDirectory()) return copyTree(root, child);
      return entry.isSymbolicLink() ? copyLink(root, child) : copyFile(root, child);
    });
  return [{ type: "directory", path, mode: 0o755 }, ...(await Promise.all(copied)).flat()];
}

async function copyLink(root: string, path: string): Promise<SkeletonEntry[]> {
  return readlink(join(root, path)).then(
    (target) => [{ type: "symlink", path, target }],
    () => [],
  );
}

async function copyFile(root: string, path: string): Promise<SkeletonEntry[]> {
  const content = await readShared(join(root, path));
  return content === null ? [] : [{ type: "file", path, mode: 0o644, content }];
}

/** A regular file's content, when every user of the host may read it. */
async function readShared(path: string): Promise<Uint8Array | null> {
  const stats = await stat(path).catch(() => null);
  return stats?.isFile() && (stats.mode & 0o004) !== 0 ? readFile(path).catch(() => null) : null;
}
