import { createHash, randomUUID } from "node:crypto";
import { mkdir, readFile, rename, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..");

/**
 * Bundles a program of this repository that runs elsewhere to one file, `<name>.mjs`, and answers the directory that holds it:
 * another one for another content. When no source has changed, the last bundle is answered. Any number of processes may build
 * at once.
 */
export async function bundleProgram(name, entryPoint) {
  const cache = join(root, "node_modules", ".cache", `slipway-${name}`);
  const index = join(cache, "latest.json");
  const file = `${name}.mjs`;
  const latest = await readLatest(index, file);
  if (latest !== undefined) return latest;
  const { outputFiles, metafile } = await build({
    entryPoints: [entryPoint],
    absWorkingDir: root,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node22",
    // Dependencies that are CommonJS call `require` for Node's own modules.
    banner: { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' },
    legalComments: "none",
    logLevel: "silent",
    write: false,
    metafile: true,
  });
  const { contents } = outputFiles[0];
  const directory = join(cache, createHash("sha256").update(contents).digest("hex").slice(0, 16));
  await writeWhole(join(directory, file), contents);
  const stamps = await stampsOf(Object.keys(metafile.inputs).map((path) => join(root, path)));
  await writeWhole(index, JSON.stringify({ directory, stamps }));
  return directory;
}

/** The last bundle, if it is of the sources as they are. */
async function readLatest(index, file) {
  try {
    const { directory, stamps } = JSON.parse(await readFile(index, "utf8"));
    // A copied checkout brings the index of another one.
    if (dirname(directory) !== dirname(index)) return undefined;
    await stat(join(directory, file));
    const now = await stampsOf(Object.keys(stamps));
    return Object.entries(stamps).every(([path, stamp]) => now[path] === stamp) ? directory : undefined;
  } catch {
    return undefined;
  }
}

async function stampsOf(paths) {
  const stamp = async (path) => {
    const { size, mtimeMs } = await stat(path);
    return [path, `${size} ${mtimeMs}`];
  };
  return Object.fromEntries(await Promise.all([...paths, fileURLToPath(import.meta.url)].map(stamp)));
}

async function writeWhole(path, content) {
  await mkdir(dirname(path), { recursive: true });
  const temporary = `${path}.${randomUUID()}`;
  await writeFile(temporary, content);
  await rename(temporary, path);
}
