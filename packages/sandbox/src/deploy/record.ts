import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";

const recordSchema = z.object({
  at: z.number(),
  /** What was deployed to: the address, the app and the environment. */
  target: z.string(),
});
export type DeploymentRecord = Readonly<z.output<typeof recordSchema>>;

const file = (stateDir: string, provider: string) => join(stateDir, `deployed-${provider}.json`);

/** Remembers that a provider was proven from this state directory, which it has made. Only a hint for `slipway doctor`. */
export async function keepDeployment(stateDir: string, provider: string, record: DeploymentRecord): Promise<void> {
  const path = file(stateDir, provider);
  await writeFile(`${path}.new`, JSON.stringify(record), { mode: 0o600 });
  await rename(`${path}.new`, path);
}

/** Null: none to this target is known. */
export async function findDeployment(
  stateDir: string,
  provider: string,
  target: string,
): Promise<DeploymentRecord | null> {
  const text = await readFile(file(stateDir, provider), "utf8").catch(() => "null");
  const { data } = recordSchema.safeParse(parse(text));
  return data?.target === target ? data : null;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
