import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type BuildId, buildIdSchema, buildSecretsSchema, type InjectedSecret, SlipwayError } from "@slipway/contract";

/** Keeps builds' secrets for the services of their apps, only in files that only the server's user can read. */
export interface BuildSecrets {
  of(build: BuildId): Promise<readonly InjectedSecret[]>;
  keep(build: BuildId, secrets: readonly InjectedSecret[]): Promise<void>;
  remove(build: BuildId): Promise<void>;
  /** Removes secrets of builds that are no longer wanted. */
  sweep(isWanted: (build: BuildId) => Promise<boolean>): Promise<void>;
}

const fileName = "secrets.json";

/** `directory` has one directory per build. */
export function openBuildSecrets(directory: string): BuildSecrets {
  const pathOf = (build: BuildId) => join(directory, buildIdSchema.parse(build), fileName);
  const remove = async (build: BuildId) => {
    for (const path of [pathOf(build), `${pathOf(build)}.new`]) await rm(path, { force: true });
  };
  return {
    async of(build) {
      const text = await readFile(pathOf(build), "utf8").catch((error: NodeJS.ErrnoException) => {
        if (error.code === "ENOENT") return "[]";
        throw error;
      });
      try {
        return buildSecretsSchema.parse(JSON.parse(text));
      } catch {
        // Without the cause, which may quote a secret.
        throw new SlipwayError("internal", `the secrets of ${build} cannot be read`);
      }
    },
    async keep(build, secrets) {
      const path = pathOf(build);
      await mkdir(join(directory, build), { recursive: true, mode: 0o700 });
      await writeFile(`${path}.new`, JSON.stringify(secrets), { mode: 0o600, flush: true });
      await rename(`${path}.new`, path);
    },
    remove,
    async sweep(isWanted) {
      const names = await readdir(directory).catch(() => []);
      for (const build of names.flatMap((name) => buildIdSchema.safeParse(name).data ?? [])) {
        const files = await readdir(join(directory, build)).catch(() => []);
        if (files.some((name) => name.startsWith(fileName)) && !(await isWanted(build))) await remove(build);
      }
    },
  };
}
