import { createHash } from "node:crypto";
import { posix } from "node:path";
import { SlipwayError } from "@slipway/contract";
import { parseManifest, planInstall } from "@slipway/sandbox";

/** What a commit's install depends on: nothing, its manifests and lock file alone, or possibly any of its files. */
export type Dependencies = { readonly kind: "none" } | NamedDependencies | { readonly kind: "unknown" };

export interface NamedDependencies {
  readonly kind: "named";
  /** A hash of the files. */
  readonly key: string;
  readonly files: ReadonlyMap<string, Buffer>;
  readonly install: readonly string[];
  /** The project has install scripts of its own, which may depend on all of its files. */
  readonly ownScripts: boolean;
}

const inNodeModules = /(^|\/)node_modules\//;
const isManifest = (path: string) => posix.basename(path) === "package.json" && !inNodeModules.test(path);
const rootFiles = ["package-lock.json", "npm-shrinkwrap.json", ".npmrc"];

/** Whether npm itself reads the file at an install. */
export function tellsInstall(path: string): boolean {
  return rootFiles.includes(path) || isManifest(path);
}

/** `names`: entries of the top directory; `files`: those for which `tellsInstall`. Fails with `install_failed`. */
export function planDependencies(names: ReadonlySet<string>, files: ReadonlyMap<string, Buffer>): Dependencies {
  const root = files.get("package.json");
  const manifest = root === undefined ? null : parseManifest(root.toString("utf8"));
  if (root !== undefined && manifest === null)
    throw new SlipwayError("install_failed", "package.json is not valid JSON");
  const commands = planInstall({ names, manifest });
  const [install] = commands;
  if (install === undefined) return { kind: "none" };
  const manifests = [...files].filter(([path]) => isManifest(path)).map(([path, text]) => readManifest(path, text));
  const isNamed = manifests.every((one) => hasItsPaths(one, files)) && hasPlainSettings(files.get(".npmrc"));
  if (commands.length > 1 || install[0] !== "npm" || !isNamed) return { kind: "unknown" };
  const ownScripts = names.has("binding.gyp") || manifests.some((one) => one.hasInstallScripts);
  if (!ownScripts && !manifests.some((one) => one.namesPackages)) return { kind: "none" };
  return { kind: "named", key: keyOf(files), files, install, ownScripts };
}

/** Whether the install of one commit also serves the other. */
export function haveSameInstall(one: Dependencies, other: Dependencies): boolean {
  if (one.kind !== "named" || other.kind !== "named") return one.kind === "none" && other.kind === "none";
  return one.key === other.key && !one.ownScripts;
}

interface ReadManifest {
  readonly directory: string;
  readonly specifiers: readonly string[];
  readonly namesPackages: boolean;
  readonly hasInstallScripts: boolean;
}

const dependencyFields = ["dependencies", "devDependencies", "optionalDependencies", "peerDependencies"];
const installScripts = [
  ...["preinstall", "install", "postinstall"],
  ...["prepublish", "preprepare", "prepare", "postprepare"],
];

function readManifest(path: string, text: Buffer): ReadManifest {
  const scripts = parseManifest(text.toString("utf8"))?.scripts;
  const fields = asRecord(parse(text));
  const specifiers = dependencyFields.flatMap((field) => Object.values(asRecord(fields[field])));
  return {
    directory: posix.dirname(path),
    specifiers: specifiers.filter((specifier) => typeof specifier === "string"),
    namesPackages: specifiers.length > 0 || fields["workspaces"] !== undefined,
    hasInstallScripts: installScripts.some((name) => scripts?.has(name)),
  };
}

/** A package in a directory of the project is linked, so an install needs only its manifest. */
function hasItsPaths({ directory, specifiers }: ReadManifest, files: ReadonlyMap<string, Buffer>): boolean {
  const paths = specifiers.map(pathOf).filter((path) => path !== null);
  return paths.every((path) => files.has(posix.join(directory, path, "package.json")));
}

function pathOf(specifier: string): string | null {
  const [, path = null] = /^(?:file|link):(.*)$/.exec(specifier) ?? /^((?:\.|~?\/).*)$/.exec(specifier) ?? [];
  return path;
}

/**
 * Other settings choose what npm runs (`git` and `node-options` even with scripts disabled) and where it writes. An install
 * with them stays in one workspace.
 */
function hasPlainSettings(npmrc: Buffer | undefined): boolean {
  const lines = (npmrc?.toString("utf8") ?? "").split(/[\r\n]+/).map((line) => line.trim());
  return lines.every((line) => line === "" || /^[;#]/.test(line) || plainSetting.test(line));
}

const plainSetting =
  /^((@[\w.-]+:)?registry|\/\/[^=]*|audit(-level)?|color|engine-strict|fund|include|install-(links|strategy)|(legacy|strict)-peer-deps|lockfile-version|loglevel|omit|optional|package-lock|prefer-dedupe|progress|save-(exact|prefix)|update-notifier)\s*(=|$)/;

function keyOf(files: ReadonlyMap<string, Buffer>): string {
  const hash = createHash("sha256");
  for (const [path, content] of [...files].sort(([one], [other]) => (one < other ? -1 : 1))) {
    hash.update(`${path}\0${content.length}\0`).update(content);
  }
  return hash.digest("hex").slice(0, 32);
}

function parse(text: Buffer): unknown {
  try {
    return JSON.parse(text.toString("utf8"));
  } catch {
    return null;
  }
}

function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}
