import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

/** Where the host gets packages. Addresses hold no credentials. */
export interface PackageSettings {
  readonly npm: {
    readonly registry: string | null;
    readonly scopes: Readonly<Record<string, string>>;
    readonly caFile: string | null;
  };
  readonly pip: { readonly indexUrls: readonly string[]; readonly caFile: string | null };
  readonly apt: readonly string[];
}

export interface HostRegistries {
  readonly settings: PackageSettings;
  /** Hosts for the egress to allow, with a port where the address names one. */
  readonly hosts: readonly string[];
}

export interface RegistryInputs {
  /** Home of the user that Slipway runs as. */
  readonly home: string;
  /** Holds variables of npm and pip, such as npm_config_registry and PIP_INDEX_URL. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Caches the defaults of npm and pip, which are slow to ask for. */
  readonly cacheFile: string;
  readonly root?: string;
}

export async function hostRegistries(inputs: RegistryInputs): Promise<HostRegistries> {
  const settings = await withDefaults(await readPackageSettings(inputs), inputs);
  const addresses = [
    settings.npm.registry,
    ...Object.values(settings.npm.scopes),
    ...settings.pip.indexUrls,
    ...settings.apt,
  ];
  return { settings, hosts: hostsOf(addresses.filter((address) => address !== null)) };
}

export function hostsOf(addresses: readonly string[]): string[] {
  return [...new Set(addresses.map((address) => new URL(address).host))].sort();
}

/** From files and variables. Later files override earlier ones. */
export async function readPackageSettings({
  home,
  environment,
  root = "/",
}: Omit<RegistryInputs, "cacheFile">): Promise<PackageSettings> {
  const under = (...names: string[]) => names.map((name) => join(root, name));
  const npm = await readIni([
    ...under(
      "usr/lib/node_modules/npm/npmrc",
      "usr/share/nodejs/npm/npmrc",
      "etc/npmrc",
      "usr/etc/npmrc",
      "usr/local/etc/npmrc",
    ),
    join(home, ".npmrc"),
  ]);
  const pip = await readIni([
    ...under("etc/xdg/pip/pip.conf", "etc/pip.conf"),
    join(home, ".pip/pip.conf"),
    join(home, ".config/pip/pip.conf"),
  ]);
  const index = environment["PIP_INDEX_URL"] ?? pip.get("global.index-url") ?? "";
  const extra = environment["PIP_EXTRA_INDEX_URL"] ?? pip.get("global.extra-index-url") ?? "";
  return {
    npm: {
      registry: publicUrl(
        environment["npm_config_registry"] ?? environment["NPM_CONFIG_REGISTRY"] ?? npm.get("registry"),
      ),
      scopes: Object.fromEntries([...npm].flatMap(([key, value]) => scopeRegistry(key, value))),
      caFile: environment["npm_config_cafile"] ?? environment["NPM_CONFIG_CAFILE"] ?? npm.get("cafile") ?? null,
    },
    pip: {
      indexUrls: [index, ...extra.split(/\s+/)].map(publicUrl).filter((url) => url !== null),
      caFile: environment["PIP_CERT"] ?? pip.get("global.cert") ?? null,
    },
    apt: await readAptSources(join(root, "etc/apt")),
  };
}

/** An address without user and password; null when it is invalid or contains a variable. */
export function publicUrl(text: string | undefined): string | null {
  if (text === undefined || text.includes("${") || !URL.canParse(text)) return null;
  const url = new URL(text);
  if (url.protocol !== "https:" && url.protocol !== "http:") return null;
  url.username = "";
  url.password = "";
  url.search = "";
  return url.href;
}

function scopeRegistry(key: string, value: string): [string, string][] {
  const url = /^@[^:]+:registry$/.test(key) ? publicUrl(value) : null;
  return url === null ? [] : [[key, url]];
}

/** Reads npmrc and pip.conf files. Keys start with their section; continuation lines are joined. */
async function readIni(paths: readonly string[]): Promise<Map<string, string>> {
  const values = new Map<string, string>();
  for (const text of await Promise.all(paths.map((path) => readFile(path, "utf8").catch(() => "")))) {
    let section = "";
    let last = "";
    for (const line of text.split("\n")) {
      const header = /^\s*\[(.+)\]\s*$/.exec(line);
      const pair = /^([^\s#;=][^=]*?)\s*=\s*(.*?)\s*$/.exec(line);
      if (header) section = `${header[1]}.`;
      else if (pair) {
        last = section + pair[1];
        values.set(last, (pair[2] ?? "").replace(/^"(.*)"$/, "$1"));
      } else if (/^\s+[^\s#;]/.test(line) && last !== "") values.set(last, `${values.get(last)} ${line.trim()}`.trim());
    }
  }
  return values;
}

async function readAptSources(directory: string): Promise<string[]> {
  const parts = await readdir(join(directory, "sources.list.d")).catch(() => []);
  const paths = [
    "sources.list",
    ...parts.filter((name) => /\.(list|sources)$/.test(name)).map((name) => `sources.list.d/${name}`),
  ];
  const texts = await Promise.all(paths.map((path) => readFile(join(directory, path), "utf8").catch(() => "")));
  const lines = texts.join("\n").split("\n");
  const words = lines.filter((line) => /^\s*(deb|deb-src|URIs:)\s/.test(line)).flatMap((line) => line.split(/\s+/));
  return [...new Set(words.map(publicUrl).filter((url) => url !== null))];
}

const run = promisify(execFile);

/** Asks npm and pip once for what no file says. */
async function withDefaults(
  settings: PackageSettings,
  { cacheFile, environment, home }: RegistryInputs,
): Promise<PackageSettings> {
  if (settings.npm.registry !== null && settings.pip.indexUrls.length > 0) return settings;
  const defaults = (await readDefaults(cacheFile)) ?? (await askForDefaults({ cacheFile, environment, home }));
  return {
    ...settings,
    npm: { ...settings.npm, registry: settings.npm.registry ?? defaults.npm },
    pip: { ...settings.pip, indexUrls: settings.pip.indexUrls.length > 0 ? settings.pip.indexUrls : defaults.pip },
  };
}

interface Defaults {
  readonly npm: string | null;
  readonly pip: readonly string[];
}

async function readDefaults(cacheFile: string): Promise<Defaults | null> {
  return readFile(cacheFile, "utf8")
    .then((text) => JSON.parse(text) as Defaults)
    .catch(() => null);
}

const pipDefaults =
  "from pip._internal.models.index import PyPI as p; print(p.simple_url, 'https://' + p.file_storage_domain)";

async function askForDefaults({ cacheFile, environment, home }: Omit<RegistryInputs, "root">): Promise<Defaults> {
  const options = {
    cwd: "/",
    timeout: 20_000,
    env: { PATH: environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin", HOME: home },
  };
  const ask = (program: string, args: string[]) =>
    run(program, args, options).then(
      ({ stdout }) => stdout.trim().split(/\s+/),
      () => [],
    );
  const [npm, pip] = await Promise.all([
    ask("npm", ["config", "get", "registry"]),
    ask("python3", ["-c", pipDefaults]),
  ]);
  const defaults = { npm: publicUrl(npm[0]), pip: pip.map(publicUrl).filter((url) => url !== null) };
  if (defaults.npm === null) return defaults;
  await mkdir(dirname(cacheFile), { recursive: true });
  await writeFile(cacheFile, JSON.stringify(defaults));
  return defaults;
}
