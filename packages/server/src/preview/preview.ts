import { type BuildId, hasCode, printable } from "@slipway/contract";
import type { WorkingBuild } from "@slipway/engine";
import { addressOf, openForwarder } from "./forwarder.ts";
import { createKeptPreviews, type KeptPreview } from "./kept.ts";
import { createMainSandbox, type MainSandboxParts, previewLabels } from "./main-sandbox.ts";

/**
 * Main of each build as it runs, at an address that stays the same: over restarts of the dev server, of its sandbox, and of
 * this process. Disposing of it closes the addresses; what runs in sandboxes goes on.
 */
export interface Previews extends AsyncDisposable {
  /** Shows this commit of the build's main, or a newer one that is asked for meanwhile. What fails is told, not thrown. */
  follow(build: WorkingBuild, commit: string): Promise<void>;
  /** Opens the addresses that a process before this one had. */
  reopen(): Promise<void>;
  /** The preview ends, and all that it is made of. */
  close(build: BuildId): Promise<void>;
}

export interface PreviewParts extends MainSandboxParts {
  /** With one directory for each build. */
  readonly directory: string;
  /** Main is shown at this address. It may be told again. */
  readonly onReady: (build: BuildId, address: string) => void;
  /** Why main is not shown, or not where it was. The build goes on. */
  readonly onTrouble: (build: BuildId, reason: string) => void;
  readonly clock?: { now(): number };
}

interface Preview extends AsyncDisposable {
  follow(commit: string): Promise<void>;
}

type Kept = ReturnType<typeof createKeptPreviews>;

export function createPreviews(parts: PreviewParts): Previews {
  const kept = createKeptPreviews(parts.directory);
  const opened = new Map<BuildId, Promise<Preview>>();
  const open = (build: WorkingBuild, found: () => Promise<KeptPreview | undefined>): Promise<Preview> => {
    const known = opened.get(build.id);
    if (known !== undefined) return known;
    const opening = found().then((left) => openPreview(parts, kept, build, left));
    opened.set(build.id, opening);
    opening.catch(() => opened.delete(build.id));
    return opening;
  };
  const shut = async (build: BuildId) => {
    const preview = await opened.get(build)?.catch(() => undefined);
    opened.delete(build);
    await preview?.[Symbol.asyncDispose]();
  };
  return {
    async follow(build, commit) {
      try {
        await (await open(build, () => kept.read(build.id))).follow(commit);
      } catch (error) {
        parts.onTrouble(build.id, `there is no preview: ${(error as Error).message}`);
      }
    },
    async reopen() {
      for (const left of await kept.all()) {
        await open(left.build, async () => left).catch((error: Error) =>
          parts.onTrouble(left.build.id, `there is no preview: ${error.message}`),
        );
      }
    },
    async close(build) {
      await shut(build);
      await kept.remove(build);
      const { provider } = parts;
      for (const { id } of await provider.list({ labels: previewLabels({ id: build }) })) {
        await (await provider.get(id)).destroy();
      }
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...opened.keys()].map(shut));
    },
  };
}

const beingMade = "Main is being made ready to be shown.";
const nothingYet = "Main has no dev server yet. What is merged next may bring one.";
/** Whoever looks at what does not come up tries it again no sooner. */
const againMs = 30_000;

async function openPreview(
  parts: PreviewParts,
  keptPreviews: Kept,
  build: WorkingBuild,
  left: KeptPreview | undefined,
): Promise<Preview> {
  const { onReady, onTrouble, clock = { now: () => Date.now() } } = parts;
  const ending = new AbortController();
  const { signal } = ending;
  let waitsFor = beingMade;
  let told: string | undefined;
  let working: Promise<void> | undefined;
  let triedAtMs = Number.NEGATIVE_INFINITY;
  let kept: KeptPreview = { wanted: null, sandbox: null, commit: null, port: 0, ...left, build };
  let saving = Promise.resolve();
  const save = (change: Partial<KeptPreview>): Promise<void> => {
    kept = { ...kept, ...change };
    const write = () => keptPreviews.write(kept);
    saving = saving.then(write, write);
    return saving;
  };
  const main = createMainSandbox({ ...parts, build, left: kept, save });

  const tell = (reason: string) => {
    waitsFor = reason;
    if (reason !== told) onTrouble(build.id, reason);
    told = reason;
  };
  const show = async (commit: string) => {
    waitsFor = beingMade;
    try {
      await main.show(commit, { signal });
      told = undefined;
      onReady(build.id, addressOf(forwarder.port));
    } catch (error) {
      if (signal.aborted) return;
      if (hasCode(error, "exec_not_started")) waitsFor = nothingYet;
      else tell(printable(`Main can not be shown: ${(error as Error).message}`));
    }
    triedAtMs = clock.now();
  };
  const work = async () => {
    let shown: string | null = null;
    while (kept.wanted !== null && kept.wanted !== shown && !signal.aborted) {
      shown = kept.wanted;
      await show(shown);
    }
    working = undefined;
  };
  await using made = new AsyncDisposableStack();
  const forwarder = made.use(
    await openForwarder({
      port: left?.port,
      waitsFor: () => waitsFor,
      async connect() {
        try {
          return await main.connect();
        } catch {
          if (kept.wanted !== null && clock.now() - triedAtMs >= againMs) working ??= work();
          return null;
        }
      },
    }),
  );
  await save({ port: forwarder.port });
  if (left !== undefined && left.port !== forwarder.port) {
    const address = addressOf(forwarder.port);
    onTrouble(build.id, `Port ${left.port} is taken: the preview is at ${address} now.`);
    onReady(build.id, address);
  }
  const opened = made.move();
  return {
    async follow(commit) {
      await save({ wanted: commit });
      working ??= work();
      await working;
    },
    async [Symbol.asyncDispose]() {
      ending.abort();
      await working;
      await opened.disposeAsync();
    },
  };
}
