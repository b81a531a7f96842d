import { type BuildId, buildIdSchema, createLanes, type SandboxId, type SandboxInfo } from "@slipway/contract";
import type { NewEvent, Store } from "@slipway/engine";
import type { Sandbox, SandboxProvider } from "@slipway/sandbox";
import { sandboxChanged } from "./attempts/reports.ts";

export interface RecordingParts {
  readonly store: Pick<Store, "builds"> & { readonly ledger: Pick<Store["ledger"], "spentOn"> };
  /** Never fails. */
  tell(build: BuildId, event: NewEvent): Promise<void>;
  readonly clock: { now(): number };
}

type Provider = Pick<SandboxProvider, "create" | "get" | "list" | "snapshots" | "capabilities">;

/**
 * The same provider for sandboxes that belong to no attempt: installs, gates, checkers, previews. Records each in the
 * build that its labels name, from create to destroy.
 */
export function recordSandboxes(provider: Provider, { store, tell, clock }: RecordingParts): Provider {
  /** Keeps the reports of each sandbox in order. */
  const lanes = createLanes<SandboxId>();
  const note = (info: SandboxInfo, status: "running" | "destroyed") => {
    const build = buildIdSchema.safeParse(info.labels["build"]).data;
    if (build === undefined) return;
    void lanes.run(info.id, async () => {
      const record = await store.builds.get(build).catch(() => undefined);
      if (record === undefined) return;
      const costMicroUsd = await store.ledger.spentOn(info.id).catch(() => 0);
      await tell(build, sandboxChanged(record, null, info, { status, costMicroUsd }, clock.now()));
    });
  };
  const recorded = <S extends Sandbox>(sandbox: S): S => ({
    ...sandbox,
    async destroy(options) {
      const info = await sandbox.info(options).catch(() => undefined);
      const receipt = await sandbox.destroy(options);
      if (info !== undefined) note(info, "destroyed");
      return receipt;
    },
  });
  return {
    snapshots: provider.snapshots,
    capabilities: provider.capabilities,
    list: (filter, options) => provider.list(filter, options),
    get: async (id, options) => recorded(await provider.get(id, options)),
    async create(request, options) {
      const made = await provider.create(request, options);
      const info = await made.info().catch(() => undefined);
      if (info !== undefined) note(info, "running");
      return {
        ...recorded(made),
        async [Symbol.asyncDispose]() {
          await made[Symbol.asyncDispose]();
          if (info !== undefined) note(info, "destroyed");
        },
      };
    },
  };
}
