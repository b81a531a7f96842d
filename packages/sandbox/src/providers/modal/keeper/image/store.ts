import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { chmod, copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { arch, tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { SlipwayError } from "@slipway/contract";
import { buildLink } from "../../../../link/index.ts";
import { bootScript } from "./boot.ts";

/**
 * What of ours is in an image: directories of `/opt/slipway/store`, each by a digest of its content. The programs that
 * are the sandbox's command are one, each tool is one.
 */
export interface Store {
  /** The directory with the programs. */
  programs(): Promise<string>;
  /** An archive of directories of the store. Goes when it is disposed of. */
  pack(entries: readonly string[], options: { withNode: boolean }): Promise<Archive>;
}

export interface Archive extends AsyncDisposable {
  readonly path: string;
  readonly entries: readonly string[];
}

const builtAgent = fileURLToPath(new URL("../../../../../native/build/slipway-agent", import.meta.url));
/** Modal's machines. */
const modalArch = "x64";
const run = promisify(execFile);

/** `tools`: the directory of tool trees by digest. */
export function openStore(tools: string): Store {
  let reading: Promise<Programs> | undefined;
  const programs = () => {
    reading ??= readPrograms().catch((error) => {
      reading = undefined;
      throw error;
    });
    return reading;
  };
  return {
    programs: async () => (await programs()).digest,
    async pack(entries, { withNode }) {
      const { digest, files } = await programs();
      const directory = await mkdtemp(join(tmpdir(), "slipway-modal-"));
      await using cleanUp = new AsyncDisposableStack();
      cleanUp.defer(() => rm(directory, { recursive: true, force: true }));
      await mkdir(join(directory, digest));
      for (const [name, { content, mode }] of Object.entries(files)) {
        await writeFile(join(directory, digest, name), content);
        await chmod(join(directory, digest, name), mode);
      }
      const own = entries.filter((entry) => entry === digest);
      if (withNode) own.push(await addNode(directory));
      const path = join(directory, "archive.tgz");
      const ofTools = entries.filter((entry) => entry !== digest);
      const names = ["-C", directory, ...own, ...(ofTools.length > 0 ? ["-C", tools, ...ofTools] : [])];
      // Lightly: on one machine the time counts, and over a network the size hardly changes.
      await run("tar", ["-I", "gzip -1", "-cf", path, "--owner=0", "--group=0", "--numeric-owner", ...names]);
      const held = cleanUp.move();
      return { path, entries: [...own, ...ofTools], [Symbol.asyncDispose]: () => held.disposeAsync() };
    },
  };
}

async function addNode(directory: string): Promise<string> {
  const name = `node-${process.version}`;
  await mkdir(join(directory, name));
  await copyFile(process.execPath, join(directory, name, "node"));
  await chmod(join(directory, name, "node"), 0o755);
  return name;
}

interface Programs {
  readonly digest: string;
  readonly files: Readonly<Record<string, { readonly content: Buffer; readonly mode: number }>>;
}

async function readPrograms(): Promise<Programs> {
  if (arch() !== modalArch) {
    throw new SlipwayError("component_missing", `Modal's sandboxes need programs for ${modalArch}, not ${arch()}.`);
  }
  const agent = await readFile(builtAgent).catch((cause) => {
    const message = "slipway-agent is not compiled. Run `npm run setup` in the repository (it needs a C compiler).";
    throw new SlipwayError("component_missing", message, { cause });
  });
  const files = {
    agent: { content: agent, mode: 0o755 },
    "boot.sh": { content: Buffer.from(bootScript), mode: 0o755 },
    "link.mjs": { content: await readFile(join(await buildLink(), "link.mjs")), mode: 0o644 },
  };
  const hash = createHash("sha256");
  for (const [name, { content, mode }] of Object.entries(files)) {
    hash.update(`${name} ${mode} ${content.length}\n`).update(content);
  }
  return { digest: hash.digest("hex"), files };
}
