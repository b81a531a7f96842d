import { createHash } from "node:crypto";
import { mkdir, readFile, rename, stat, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { SlipwayError } from "@slipway/contract";
import type { CompatServiceDefinition } from "nice-grpc";

/** What the installed client says on the wire. */
export interface Codecs {
  readonly control: CompatServiceDefinition;
  readonly router: CompatServiceDefinition;
  readonly status: Encoder;
  readonly retryPolicy: Encoder;
}

interface Encoder {
  encode(message: object): { finish(): Uint8Array };
}

const exported = {
  control: "ModalClientDefinition",
  router: "TaskCommandRouterDefinition",
  status: "RPCStatus",
  retryPolicy: "RPCRetryPolicy",
} as const;

/**
 * Cuts the generated codecs out of the installed `modal` package, which bundles them without exporting them, and keeps
 * them below node_modules. So the stand-in always speaks the version of the client it is tested with.
 */
export async function loadCodecs(): Promise<Codecs> {
  const entry = createRequire(import.meta.url)
    .resolve("modal")
    .replace(/\.cjs$/, ".js");
  const bundle = await readFile(entry, "utf8");
  const source = cutCodecs(bundle);
  const name = `${createHash("sha256").update(source).digest("hex").slice(0, 16)}.mjs`;
  const directory = join(dirname(dirname(dirname(entry))), ".cache", "modal-stand-in");
  const file = join(directory, name);
  if (!(await exists(file))) {
    await mkdir(directory, { recursive: true });
    const unfinished = `${file}.${process.pid}-${performance.now()}`;
    await writeFile(unfinished, source);
    await rename(unfinished, file);
  }
  const codecs = await import(pathToFileURL(file).href);
  return Object.fromEntries(Object.keys(exported).map((key) => [key, codecs[key]])) as unknown as Codecs;
}

/** The bundler marks each module with a line `// <path>`. */
export function cutCodecs(bundle: string): string {
  const marks = [...bundle.matchAll(/^\/\/ ((?:src|proto|node_modules)\/\S+)$/gm)];
  const parts = marks.flatMap((mark, number) =>
    /^(proto|node_modules\/@bufbuild)\//.test(mark[1] ?? "")
      ? [bundle.slice(mark.index, marks[number + 1]?.index)]
      : [],
  );
  const names = Object.entries(exported).map(([key, name]) => `${name} as ${key}`);
  const missing = Object.values(exported).filter((name) => !parts.some((part) => part.includes(`var ${name} = {`)));
  if (missing.length > 0)
    throw new SlipwayError("component_missing", `The installed modal package has no ${missing.join(", ")}.`);
  return `${parts.join("")}\nexport { ${names.join(", ")} };\n`;
}

async function exists(file: string): Promise<boolean> {
  return await stat(file).then(
    () => true,
    () => false,
  );
}
