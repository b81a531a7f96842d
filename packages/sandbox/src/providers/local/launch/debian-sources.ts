import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { publicUrl } from "../../../host-registries.ts";

/** The archive of Debian's packages: the host's own when the host is Debian, else debootstrap's default. */
export interface DebianSources {
  readonly suite: string;
  /** Null: debootstrap chooses. */
  readonly mirror: string | null;
  /** Addresses of the archives; none when the host is not Debian and has no debootstrap. */
  readonly archives: readonly string[];
  /** The lines of a sources.list. */
  readonly lines: readonly string[];
}

interface Source {
  readonly url: string;
  readonly suite: string;
  readonly components: readonly string[];
}

/** `root` is the host's. */
export async function readDebianSources(root = "/"): Promise<DebianSources> {
  const codename = await debianCodename(root);
  const sources = codename === null ? [] : (await readSources(join(root, "etc/apt"))).filter(ofRelease(codename));
  const main = sources.find(({ suite }) => !suite.includes("-"));
  if (main !== undefined) {
    const lines = sources.map(({ url, suite, components }) => `deb ${url} ${suite} ${components.join(" ")}`);
    return { suite: main.suite, mirror: main.url, archives: sources.map(({ url }) => url), lines: [...new Set(lines)] };
  }
  const archive = await defaultMirror(root);
  const suite = codename ?? "stable";
  return {
    suite,
    mirror: null,
    archives: archive === null ? [] : [archive],
    lines: archive === null ? [] : [`deb ${archive} ${suite} main`],
  };
}

async function debianCodename(root: string): Promise<string | null> {
  const text = await readFile(join(root, "etc/os-release"), "utf8").catch(() => "");
  const value = (name: string) => new RegExp(`^${name}="?([a-z0-9]+)"?$`, "m").exec(text)?.[1];
  return value("ID") === "debian" ? (value("VERSION_CODENAME") ?? null) : null;
}

/** Debian's own suites. Other archives use its release names too, but have no `main`. */
function ofRelease(codename: string): (source: Source) => boolean {
  const suites = new RegExp(`^(${codename}|stable|oldstable|testing|unstable|sid)(-updates|-security|-backports)?$`);
  return ({ suite, components }) => suites.test(suite) && components.includes("main");
}

async function readSources(directory: string): Promise<Source[]> {
  const names = await readdir(join(directory, "sources.list.d")).catch(() => []);
  const paths = ["sources.list", ...names.sort().map((name) => `sources.list.d/${name}`)];
  const all = paths.map(async (path) => {
    const text = await readFile(join(directory, path), "utf8").catch(() => "");
    if (path.endsWith(".sources")) return text.split(/\n\s*\n/).flatMap(fromStanza);
    return path.endsWith(".list") ? text.split("\n").flatMap(fromLine) : [];
  });
  return (await Promise.all(all)).flat();
}

/** `deb [options] url suite component...` */
function fromLine(line: string): Source[] {
  const [type, address, suite, ...components] = line
    .replace(/#.*/, "")
    .replace(/\[[^\]]*\]/, "")
    .trim()
    .split(/\s+/);
  const url = publicUrl(address);
  return type === "deb" && url !== null && suite !== undefined ? [{ url, suite, components }] : [];
}

/** A stanza of a deb822 file; its lists may span lines. */
function fromStanza(stanza: string): Source[] {
  const text = stanza.replace(/^#.*\n?/gm, "");
  const words = (field: string) =>
    new RegExp(`^${field}:((?:.*)(?:\\n[ \\t].*)*)`, "im").exec(text)?.[1]?.trim().split(/\s+/) ?? [];
  if (!words("Types").includes("deb") || words("Enabled")[0]?.toLowerCase() === "no") return [];
  const urls = words("URIs").flatMap((address) => publicUrl(address) ?? []);
  return urls.flatMap((url) => words("Suites").map((suite) => ({ url, suite, components: words("Components") })));
}

async function defaultMirror(root: string): Promise<string | null> {
  const program = await readFile(join(root, "usr/sbin/debootstrap"), "utf8").catch(() => "");
  return publicUrl(/^DEF_HTTPS_MIRROR="([^"]+)"$/m.exec(program)?.[1]);
}
