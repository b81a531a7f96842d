import type { BuildId, InsteadView } from "@slipway/contract";
import type { Store } from "@slipway/engine";
import { readAll } from "../all-records.ts";

export interface InsteadParts {
  readonly store: Pick<Store, "builds">;
  repositoryOf(build: BuildId): string;
}

export const noDevServer =
  "main has no dev server: no dev, start or serve script, no Vite, no manage.py and no index.html";

/** What a main without a dev server offers instead of a preview. */
export async function readInstead(
  { store, repositoryOf }: InsteadParts,
  build: BuildId,
  commit: string,
): Promise<InsteadView> {
  const merges = await readAll(store, build, "merges");
  const last = merges.toSorted((a, b) => a.position - b.position).at(-1)?.candidate;
  const results = (await readAll(store, build, "gateResults")).filter(({ candidate }) => candidate === last);
  const verdicts = new Map(
    results.toSorted((a, b) => a.endedAt - b.endedAt).map(({ gate, verdict }) => [gate, verdict]),
  );
  return {
    reason: noDevServer,
    repository: repositoryOf(build),
    branch: "main",
    commit,
    gates: [...verdicts].map(([name, verdict]) => ({ name, verdict })),
  };
}

export function insteadText({ reason, repository, branch, commit, gates }: InsteadView): string {
  const tested = gates.map(({ name, verdict }) => `${name} ${verdict}`).join(", ");
  return [
    `There is nothing to show: ${reason}.`,
    "Once a merge adds one, it is shown here.",
    "",
    "Available instead:",
    `  to clone:   ${repository}`,
    `  branch:     ${branch}, at ${commit}`,
    ...(tested === "" ? [] : [`  gates:      ${tested}`]),
  ].join("\n");
}
