import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type BuildId, buildIdSchema, buildModes, sandboxIdSchema } from "@slipway/contract";
import { z } from "zod";

const keptSchema = z.object({
  build: z.object({
    id: buildIdSchema,
    account: z.string(),
    project: z.string(),
    mode: z.enum(buildModes),
    request: z.string(),
  }),
  /** 0: it has had none yet. */
  port: z.int().min(0).max(65535),
  /** What lets in; null: it has had none yet. */
  token: z.string().min(1).nullable().default(null),
  /** The commit of main to be shown; null: none was named yet. */
  wanted: z.string().nullable(),
  /** That commit has no dev server. */
  isNothing: z.boolean().default(false),
  /** Where it is shown; null: nowhere. */
  sandbox: sandboxIdSchema.nullable(),
  /** What the sandbox's files are; null: in between two commits. */
  commit: z.string().nullable(),
  /** Its user wants to see nothing of it for now. */
  closed: z.boolean().default(false),
});

/** What is known of a preview to whoever takes it over. */
export type KeptPreview = Readonly<z.output<typeof keptSchema>>;

const fileName = "preview.json";

/** Previews by their builds; each build has a directory below this one. */
export function createKeptPreviews(directory: string) {
  const pathOf = (build: BuildId) => join(directory, build, fileName);
  const read = async (build: string): Promise<KeptPreview | undefined> => {
    const text = await readFile(join(directory, build, fileName), "utf8").catch(() => "null");
    return keptSchema.safeParse(parse(text)).data;
  };
  return {
    read: (build: BuildId) => read(build),
    async write(kept: KeptPreview): Promise<void> {
      const path = pathOf(kept.build.id);
      await mkdir(join(directory, kept.build.id), { recursive: true, mode: 0o700 });
      await writeFile(`${path}.new`, JSON.stringify(kept), { mode: 0o600 });
      await rename(`${path}.new`, path);
    },
    remove: (build: BuildId) => rm(pathOf(build), { force: true }),
    async all(): Promise<KeptPreview[]> {
      const found = await Promise.all((await readdir(directory).catch(() => [])).map(read));
      return found.filter((kept) => kept !== undefined);
    },
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
