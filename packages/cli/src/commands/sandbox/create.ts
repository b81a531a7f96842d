import type { SandboxProvider } from "@slipway/sandbox";
import type { Mount } from "@slipway/store/workspaces";
import type { Context } from "../../input/command.ts";
import { UsageError } from "../../input/failure.ts";
import { inOptions } from "../../input/in-options.ts";
import {
  choice,
  given,
  type ImageChoice,
  imageChoice,
  type SandboxChoices,
  sandboxChoices,
  timeChoices,
} from "../../input/request.ts";
import { findSnapshotId, nameLabel, sandboxOf } from "../../input/resolve.ts";

export async function run(context: Context): Promise<void> {
  const { args, interrupts } = context;
  const { signal } = interrupts;
  const choices = sandboxChoices(args, context.io.env);
  const times = timeChoices(choices, await context.settings());
  const image = imageChoice(args);
  const user = choice(args, "user", ["agent", "root"]);
  const from = args.text("snapshot");
  if (from !== undefined && image !== undefined) {
    throw new UsageError("--snapshot cannot be combined with an image.", "Remove the options that choose an image.");
  }
  const mounts = await mountsOf(context, choices.workdir);
  const provider = await context.provider();
  const name = choices.labels?.[nameLabel];
  await refuseTakenName(provider, choices, signal);
  const snapshot = from === undefined ? undefined : await findSnapshotId(provider, from, signal);
  if (image !== undefined) await prepareImage(context, provider, image);
  context.progress.status("creating the sandbox");
  const request = { ...choices, ...times, ...given({ image, user, snapshot }) };
  const sandbox = await inOptions(request, async () => {
    if (mounts.length === 0) return await provider.create(request, { signal });
    const { createWithStorage } = await import("@slipway/store/workspaces");
    return await createWithStorage(provider, await context.storage(), { ...request, mounts }, { signal });
  });
  context.progress.clear();
  await context.result(context.json ? await sandbox.info({ signal }) : null, `${sandbox.id}\n`);
  if (context.out.isTerminal) await context.note(`Open a shell: slipway sandbox shell ${name ?? sandbox.id}`);
}

/** What the sandbox is to start with of the storage. */
async function mountsOf({ args }: Context, workdir = "/workspace"): Promise<Mount[]> {
  const [workspace, version, volumes] = [args.text("workspace"), args.text("version"), args.list("volume")];
  if (version !== undefined && workspace === undefined) throw new UsageError("--version needs --workspace.");
  if (workspace === undefined && volumes.length === 0 && !args.flag("shared")) return [];
  const { parsePlace } = await import("@slipway/store/workspaces");
  const mounts: Mount[] = volumes.map((volume) => {
    const place = parsePlace(`projects/${volume}`);
    return { place, directory: `/projects/${volume}` };
  });
  if (workspace !== undefined) mounts.push({ place: parsePlace(workspace), directory: workdir, version });
  if (args.flag("shared")) mounts.push({ place: { kind: "shared" }, directory: "/shared" });
  return mounts;
}

export async function fork(context: Context): Promise<void> {
  const { signal } = context.interrupts;
  const choices = sandboxChoices(context.args, context.io.env);
  await refuseTakenName(await context.provider(), choices, signal);
  const origin = await sandboxOf(context);
  // A name belongs to one sandbox: the fork inherits only the other labels.
  const { [nameLabel]: _, ...inherited } = (await origin.info({ signal })).labels;
  context.progress.status("forking the sandbox");
  const overrides = { ...choices, labels: { ...inherited, ...choices.labels } };
  const sandbox = await inOptions(overrides, () => origin.fork(overrides, { signal }));
  context.progress.clear();
  await context.result(context.json ? await sandbox.info({ signal }) : null, `${sandbox.id}\n`);
}

/** Not a guarantee: two creates can run at once. A name used twice is later refused as ambiguous. */
async function refuseTakenName(
  provider: SandboxProvider,
  { labels, idempotencyKey }: SandboxChoices,
  signal: AbortSignal,
): Promise<void> {
  const name = labels?.[nameLabel];
  if (name === undefined || idempotencyKey !== undefined) return;
  const [taken] = await provider.list({ labels: { [nameLabel]: name } }, { signal });
  if (!taken) return;
  throw new UsageError(
    `The name "${name}" is taken by ${taken.id}, which is ${taken.state}.`,
    `Choose another name, use that sandbox, or remove it: slipway sandbox rm ${name}`,
  );
}

export async function prepareImage(context: Context, provider: SandboxProvider, image: ImageChoice): Promise<void> {
  const { signal } = context.interrupts;
  await provider.prepareImage(image, { signal, onProgress: (line) => context.progress.line(line) });
}
