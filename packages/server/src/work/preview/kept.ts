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
  /** 0: none yet. */
  port: z.int().min(0).max(65535),
  /** Grants access; null: none yet. */
  token: z.string().min(1).nullable().default(null),
  /** The commit of main to show; null: none yet. */
  wanted: z.string().nullable(),
  /** The commit has no dev server. */
  isNothing: z.boolean().default(false),
  /** Where it runs; null: nowhere. */
  sandbox: sandboxIdSchema.nullable(),
  /** The commit of the sandbox's files; null: in between two commits. */
  commit: z.string().nullable(),
  /** Its user closed it. */
  closed: z.boolean().default(false),
});

/** What the next process needs to take a preview over. */
export type KeptPreview = Readonly<z.output<typeof keptSchema>>;

/** The previews of all builds; each build has a directory below this one. */
export function createKeptPreviews(directory: string) {
  const pathOf = (build: string) => join(directory, build, "preview.json");
  const read = async (build: string): Promise<KeptPreview | undefined> => {
    try {
      return keptSchema.safeParse(JSON.parse(await readFile(pathOf(build), "utf8"))).data;
    } catch {
      return undefined;
    }
  };
  return {
    read,
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
