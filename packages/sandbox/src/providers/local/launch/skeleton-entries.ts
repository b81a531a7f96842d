import { readdir, readFile, readlink, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import type { PackageSettings } from "../../../host-registries.ts";

/** One entry of the skeleton; directories come before what is in them. */
export type SkeletonEntry =
  | { readonly type: "directory"; readonly path: string; readonly mode: number }
  | { readonly type: "file"; readonly path: string; readonly mode: number; readonly content: Uint8Array }
  | { readonly type: "symlink"; readonly path: string; readonly target: string };

/** What the skeleton needs besides the host's files. */
export interface SkeletonSources {
  readonly settings: PackageSettings;
  /** Certificate of the egress, which sandboxes trust like the host's authorities. */
  readonly egressCa: string;
  /** The host's root directory. */
  readonly root?: string;
}

/** The lowest layer of the `host` image: a root directory to go with the host's /usr. */
export async function skeletonEntries({ settings, egressCa, root = "/" }: SkeletonSources): Promise<SkeletonEntry[]> {
  const copied = await Promise.all([
    ...rootLinks.map((name) => copyLink(root, name)),
    ...copiedFiles.map((name) => copyFile(root, `etc/${name}`)),
    ...(await namesOfTrees(root)).map((name) => copyTree(root, `etc/${name}`)),
    copyCertificates(root),
    trustBundle({ settings, egressCa, root }).then((bundle) => [bundle]),
  ]);
  return [...directories(), ...copied.flat(), ...madeUp(settings)];
}

const rootLinks = ["bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/** Settings that programs in /usr need. None is private to the host. */
const copiedFiles = [
  ...["bash.bashrc", "debian_version", "inputrc", "ld.so.cache", "ld.so.conf", "locale.alias", "magic", "magic.mime"],
  ...["mime.types", "protocols", "services", "ssl/openssl.cnf"],
];
const copiedTrees = /^(alternatives|chromium|chromium\.d|fonts|ld\.so\.conf\.d|vim|java-\d+-openjdk|python3(\.\d+)?)$/;
/** May name the machine's owner, or hold its enrolment. */
const neverCopied = new Set(["policies", "private", "native-messaging-hosts"]);

function directories(): SkeletonEntry[] {
  const open =
    "dev etc etc/ssl etc/ssl/certs home home/agent media mnt opt proc run srv sys usr usr/etc usr/local " +
    "usr/local/bin usr/local/etc usr/local/include usr/local/lib usr/local/sbin usr/local/share usr/local/src " +
    "var var/cache var/lib var/log var/spool workspace";
  return [
    ...open.split(" ").map((path) => ({ type: "directory", path, mode: 0o755 }) as const),
    { type: "directory", path: "root", mode: 0o700 },
    { type: "directory", path: "tmp", mode: 0o1777 },
    { type: "directory", path: "var/tmp", mode: 0o1777 },
  ];
}

export function textFile(path: string, content: string, mode = 0o644): SkeletonEntry {
  return { type: "file", path, mode, content: Buffer.from(content) };
}

function madeUp(settings: PackageSettings): SkeletonEntry[] {
  const text = textFile;
  const link = (path: string, target: string): SkeletonEntry => ({ type: "symlink", path, target });
  return [
    ...sharedFiles(settings),
    text(
      "etc/passwd",
      "root:x:0:0:root:/root:/bin/bash\nagent:x:1000:1000:agent:/home/agent:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    ),
    text("etc/group", "root:x:0:\ntty:x:5:\nagent:x:1000:\nnogroup:x:65534:\n"),
    text("etc/host.conf", "multi on\n"),
    text("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\nservices: files\nprotocols: files\n"),
    text("etc/shells", "/bin/sh\n/bin/bash\n"),
    text("etc/timezone", "Etc/UTC\n"),
    text(
      "etc/profile",
      '[ -n "$PATH" ] || export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\numask 022\n',
    ),
    text("usr/etc/npmrc", npmrcText(settings)),
    text("usr/etc/empty", ""),
    link("etc/localtime", "/usr/share/zoneinfo/Etc/UTC"),
    link("etc/mtab", "/proc/self/mounts"),
    link("etc/os-release", "../usr/lib/os-release"),
    link("var/run", "/run"),
    link("var/lock", "/run/lock"),
  ];
}

/** Made-up files of every image. */
export function sharedFiles(settings: PackageSettings): SkeletonEntry[] {
  return [
    textFile("etc/hosts", "127.0.0.1 localhost slipway\n::1 localhost\n"),
    textFile("etc/hostname", "slipway\n"),
    textFile("etc/machine-id", "5119a7a55119a7a55119a7a55119a7a5\n"),
    textFile(
      "etc/gitconfig",
      "[user]\n\tname = agent\n\temail = agent@slipway.invalid\n[init]\n\tdefaultBranch = main\n[safe]\n\tdirectory = *\n",
    ),
    textFile("etc/pip.conf", pipText(settings)),
    // npm reads the npmrc beside its Node.
    ...["etc/npmrc", "usr/local/etc/npmrc"].map((path) => textFile(path, npmrcText(settings))),
  ];
}

/** All authorities that programs inside trust. */
export const caBundlePath = "/etc/ssl/certs/ca-certificates.crt";
const bundlePlaces = ["etc/ssl/certs/ca-certificates.crt", "etc/pki/tls/certs/ca-bundle.crt", "etc/ssl/ca-bundle.pem"];

/** The authorities of the host, of its package settings, and of the egress. */
export async function trustBundle({ settings, egressCa, root = "/" }: SkeletonSources): Promise<SkeletonEntry> {
  const named = [settings.npm.caFile, settings.pip.caFile].filter((path) => path !== null);
  const paths = [...bundlePlaces, ...named].map((path) => join(root, path));
  const texts = await Promise.all([...new Set(paths)].map((path) => readShared(path)));
  const bundles = texts.flatMap((content) =>
    content === null ? [] : [Buffer.from(content).toString("latin1").trim()],
  );
  return textFile(
    caBundlePath.slice(1),
    [...new Set([...bundles, egressCa.trim()])].map((text) => `${text}\n`).join(""),
  );
}

function npmrcText({ npm }: PackageSettings): string {
  const registries = [["registry", npm.registry], ...Object.entries(npm.scopes)].filter(([, url]) => url !== null);
  // The default prefix of a Node in /usr is read-only.
  const places = [
    ["cafile", caBundlePath],
    ["prefix", "/usr/local"],
    ["update-notifier", "false"],
  ];
  return [...registries, ...places].map(([key, value]) => `${key}=${value}\n`).join("");
}

function pipText({ pip }: PackageSettings): string {
  const [index, ...extra] = pip.indexUrls;
  const lines = [
    index === undefined ? null : `index-url = ${index}`,
    extra.length === 0 ? null : `extra-index-url = ${extra.join(" ")}`,
    `cert = ${caBundlePath}`,
    "break-system-packages = true",
  ];
  return `[global]\n${lines
    .filter((line) => line !== null)
    .map((line) => `${line}\n`)
    .join("")}`;
}

/** Follows links that lead out of the directory: their targets may not exist inside. */
async function copyCertificates(root: string): Promise<SkeletonEntry[]> {
  const directory = "etc/ssl/certs";
  const entries = await readdir(join(root, directory), { withFileTypes: true }).catch(() => []);
  const single = entries.filter(({ name }) => name !== basename(caBundlePath));
  const copied = single.map(async (entry): Promise<SkeletonEntry[]> => {
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

export async function copyTree(root: string, path: string): Promise<SkeletonEntry[]> {
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

/** The content of a regular file that every user of the host may read. */
async function readShared(path: string): Promise<Uint8Array | null> {
  const stats = await stat(path).catch(() => null);
  return stats?.isFile() && (stats.mode & 0o004) !== 0 ? readFile(path).catch(() => null) : null;
}
