import { type BuildId, hasCode, type SandboxId } from "@slipway/contract";
import type { WorkItem } from "@slipway/engine";
import type { SandboxProvider } from "@slipway/sandbox";
import { runLabels } from "./gates/gates.ts";
import { previewLabels } from "./preview/main-sandbox.ts";

type Provider = Pick<SandboxProvider, "list" | "get">;
type Labels = Readonly<Record<string, string>>;

/** Ends sandboxes of gate runs that an earlier process began and that are no longer wanted. */
export async function endUnwantedRuns(provider: Provider, build: BuildId, wanted: readonly WorkItem[]): Promise<void> {
  const runs = wanted.flatMap((item) => {
    if (item.type === "gate-run") return runLabels(build, item.run);
    return item.type === "check-satisfaction" ? runLabels(build, "satisfaction") : [];
  });
  const names = new Set(runs.map((labels) => labels["gate-run"]));
  await endSandboxes(provider, build, (labels) => "gate-run" in labels && !names.has(labels["gate-run"] ?? ""));
}

/** Ends all sandboxes of a build except main's. */
export async function endAllButMain(provider: Provider, build: BuildId): Promise<void> {
  const { purpose } = previewLabels({ id: build });
  await endSandboxes(provider, build, (labels) => labels["purpose"] !== purpose);
}

async function endSandboxes(provider: Provider, build: BuildId, isLeft: (labels: Labels) => boolean): Promise<void> {
  for (const { id, labels } of await provider.list({ labels: { build } })) {
    if (isLeft(labels)) await endSandbox(provider, id);
  }
}

/** Ends a sandbox, unless it has ended. */
export async function endSandbox(provider: Pick<SandboxProvider, "get">, id: SandboxId): Promise<void> {
  try {
    await (await provider.get(id)).destroy();
  } catch (error) {
    if (!hasCode(error, "sandbox_not_found") && !hasCode(error, "sandbox_ended")) throw error;
  }
}
