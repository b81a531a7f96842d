import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type OwnedSandbox, projectPath, type SandboxProvider } from "@slipway/sandbox";
import { z } from "zod";
import { checks } from "../../../../../../../examples/demo-build/checks.ts";
import { intent } from "../../../../../../../examples/demo-build/intent.ts";
import { checkAll } from "../check-all.ts";

const directory = join(import.meta.dirname, "../../../../../../../examples/demo-variants");

/** What of an app differs without making a difference. */
export const dresses = ["plain", "wordy", "loud", "late"] as const;
export type Dress = (typeof dresses)[number];

const mutantSchema = z.strictObject({
  app: z.string(),
  name: z.string(),
  kind: z.string(),
  file: z.string(),
  find: z.string(),
  replace: z.string(),
});
export type Mutant = z.output<typeof mutantSchema>;

type Files = ReadonlyMap<string, string>;

/** Apps by people who saw only the intent and the surface of the demo, by their names. */
export async function readApps(): Promise<ReadonlyMap<string, Files>> {
  const names = (await readdir(join(directory, "apps"))).toSorted();
  return new Map(await Promise.all(names.map(async (name) => [name, await readApp(name)] as const)));
}

/** Each is one of the apps with one behaviour broken. */
export async function readMutants(): Promise<readonly Mutant[]> {
  const kept: unknown = JSON.parse(await readFile(join(directory, "mutants.json"), "utf8"));
  return z.array(mutantSchema).parse(kept);
}

export function mutated(files: Files, { file, find, replace }: Mutant): Files {
  const parts = files.get(file)?.split(find) ?? [];
  if (parts.length !== 2) throw new Error(`${file} has ${JSON.stringify(find)} ${parts.length - 1} times`);
  return new Map([...files, [file, parts.join(replace)]]);
}

async function readApp(name: string): Promise<Files> {
  const paths = await readdir(join(directory, "apps", name), { recursive: true });
  const read = async (path: string) => [path, await readFile(join(directory, "apps", name, path), "utf8")] as const;
  return new Map([
    ...(await Promise.all(paths.map(read))),
    ["dressed.js", await readFile(join(directory, "dressed.js"), "utf8")],
  ]);
}

/** The criteria and workflows that the demo's checks find unmet in an app, with what they say. */
export async function refusalsOf(
  provider: SandboxProvider,
  files: Files,
  { dress = "plain", demanded = () => true }: { readonly dress?: Dress; demanded?(id: string): boolean } = {},
): Promise<string[]> {
  const { signal } = new AbortController();
  await using sandbox = await provider.create({ ...life, tools: ["node"], env: { DRESS: dress } });
  await bringIn(sandbox, files);
  const demands = [...Map.groupBy(checks, ({ proves }) => proves)]
    .filter(([id]) => demanded(id))
    .map(([id, ofDemand]) => ({ id, statement: id, checks: ofDemand, tasks: new Set(""), servedBy: new Set("") }));
  const seen = await checkAll({ provider, sandbox, labels: {}, signal }, { surface: intent.surface, demands });
  if ("failure" in seen) return [seen.failure];
  return seen.checked.filter(({ satisfied }) => !satisfied).map(({ id, text }) => `${id}\n${text}`);
}

/** The apps are written for the Node that is a tool. */
const life = { memoryMb: 512, idleMs: null, onEnd: "destroy" } as const;

async function bringIn(sandbox: OwnedSandbox, files: Files): Promise<void> {
  await sandbox.files.mkdir(projectPath);
  for (const [path, content] of files) {
    const isManifest = path === "package.json";
    const dressed = isManifest ? dressedManifest(content, `${sandbox.toolsDirectory}/node/node`) : content;
    await sandbox.files.write(`${projectPath}/${path}`, dressed);
  }
}

function dressedManifest(manifest: string, node: string): string {
  return JSON.stringify({ ...JSON.parse(manifest), scripts: { dev: `${node} dressed.js` } });
}
