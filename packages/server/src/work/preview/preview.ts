import { type BuildId, createLane, createLanes, printable, SlipwayError } from "@slipway/contract";
import type { WorkingBuild } from "@slipway/engine";
import { devServerPort } from "@slipway/sandbox";
import { openAddress, type Page, type UsedPorts } from "@slipway/sandbox/local/preview";
import { createKeptPreviews, type KeptPreview } from "./kept.ts";
import { createMainSandbox, type MainSandboxParts, previewLabels } from "./main-sandbox.ts";

/**
 * Shows the running main of each build at an address that survives restarts of the dev server, of its sandbox, and of this
 * process. Disposing of it closes the addresses; the sandboxes keep running.
 */
export interface Previews extends AsyncDisposable {
  /** Shows this commit of main, or a newer one requested meanwhile. Reports failures through `onTrouble`, never throws. */
  follow(build: WorkingBuild, commit: string): Promise<void>;
  /** Opens the addresses of an earlier process again. */
  reopen(): Promise<void>;
  /** Like `follow`, but also opens a closed preview. Returns its address without waiting for the dev server. */
  open(build: WorkingBuild, commit: string): Promise<string>;
  /** Frees the port and the sandbox and stops following main until `open`, which gives another token. */
  close(build: WorkingBuild): Promise<void>;
  /** Null: closed. Undefined: no preview here. */
  addressOf(build: BuildId): Promise<string | null | undefined>;
  /** Whether it is open on a main without a dev server. */
  isNothing(build: BuildId): Promise<boolean>;
  /** Removes the preview and everything it uses. */
  end(build: BuildId): Promise<void>;
}

export interface PreviewParts extends MainSandboxParts {
  /** With one directory for each build. */
  readonly directory: string;
  readonly usedPorts: UsedPorts;
  /** The page text for a main without a dev server. */
  readonly insteadOf: (build: BuildId, commit: string) => Promise<string>;
  /** Main is shown at this address, which grants access. May be called again with the same address. */
  readonly onReady: (build: BuildId, address: string) => void;
  /** Why main is not shown, or not at its old address. The build continues. */
  readonly onTrouble: (build: BuildId, reason: string) => void;
  /** Whether the build still works: main of one that has ended is not shown for longer than its sandbox lives. */
  readonly isUnderway: (build: BuildId) => Promise<boolean>;
  readonly clock?: { now(): number };
}

type Preview = Awaited<ReturnType<typeof openPreview>>;

export function createPreviews(parts: PreviewParts): Previews {
  const kept = createKeptPreviews(parts.directory);
  const opened = new Map<BuildId, Preview>();
  /** Opens and closes one at a time per build. */
  const lanes = createLanes<BuildId>();
  const inLine = lanes.run;
  const open = async (build: WorkingBuild): Promise<Preview> => {
    const preview = opened.get(build.id) ?? (await openPreview(parts, kept, build, await kept.read(build.id)));
    opened.set(build.id, preview);
    return preview;
  };
  const openUnlessClosed = async (build: WorkingBuild): Promise<Preview | undefined> =>
    (await kept.read(build.id))?.closed ? undefined : await open(build);
  const shut = async (build: BuildId) => {
    const preview = opened.get(build);
    opened.delete(build);
    await preview?.[Symbol.asyncDispose]();
  };
  const endSandboxes = async (build: BuildId) => {
    const { provider } = parts;
    for (const { id } of await provider.list({ labels: previewLabels({ id: build }) })) {
      await (await provider.get(id)).destroy();
    }
  };
  const tellTrouble = ({ id }: WorkingBuild, error: Error) => parts.onTrouble(id, `no preview: ${error.message}`);
  const follow = async (build: WorkingBuild, commit: string) => {
    try {
      const preview = await inLine(build.id, () => openUnlessClosed(build));
      await preview?.follow(commit);
    } catch (error) {
      tellTrouble(build, error as Error);
    }
  };
  return {
    follow,
    async reopen() {
      for (const { build } of await kept.all()) {
        await inLine(build.id, () => openUnlessClosed(build)).catch((error) => tellTrouble(build, error));
      }
    },
    async open(build, commit) {
      const preview = await inLine(build.id, () => open(build));
      await preview.want(commit);
      void preview.follow(commit).catch((error) => tellTrouble(build, error));
      return preview.address;
    },
    close: (build) =>
      inLine(build.id, async () => {
        await shut(build.id);
        const left = (await kept.read(build.id)) ?? { ...nothingKept, build };
        await kept.write({ ...left, token: null, sandbox: null, commit: null, closed: true });
        await endSandboxes(build.id);
      }),
    addressOf: async (build) =>
      opened.get(build)?.address ?? ((await kept.read(build))?.closed === true ? null : undefined),
    isNothing: async (build) => opened.get(build)?.isNothing ?? false,
    end: (build) =>
      inLine(build, async () => {
        await shut(build);
        await kept.remove(build);
        await endSandboxes(build);
      }),
    async [Symbol.asyncDispose]() {
      await lanes.settled();
      await Promise.all([...opened.keys()].map((build) => inLine(build, () => shut(build)).catch(() => {})));
    },
  };
}

const nothingKept = {
  wanted: null,
  isNothing: false,
  sandbox: null,
  commit: null,
  port: 0,
  token: null,
  closed: false,
};

const beingHandedOver = "Main is about to continue. This page reloads by itself.";
const beingMade = "Main is being prepared. This page reloads by itself.";
/** A visit retries a failed main at most this often. */
const againMs = 30_000;
/** How often a waiting page reloads: until main is shown, or until a merge adds a dev server. */
const refreshSeconds = { soon: 2, merge: 15 };

async function openPreview(
  parts: PreviewParts,
  keptPreviews: ReturnType<typeof createKeptPreviews>,
  build: WorkingBuild,
  left: KeptPreview | undefined,
) {
  const { onReady, onTrouble, usedPorts, insteadOf, isUnderway, clock = { now: () => Date.now() } } = parts;
  const ending = new AbortController();
  const { signal } = ending;
  let waitsFor = beingMade;
  let told: string | undefined;
  let working: Promise<void> | undefined;
  let triedAtMs = Number.NEGATIVE_INFINITY;
  let handingOver: NodeJS.Timeout | undefined;
  let kept: KeptPreview = { ...nothingKept, ...left, build, closed: false };
  const saving = createLane();
  const save = (change: Partial<KeptPreview>): Promise<void> => {
    kept = { ...kept, ...change };
    return saving(() => keptPreviews.write(kept));
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
      if (kept.isNothing) return await main.end();
      await main.show(commit, { signal });
      told = undefined;
      onReady(build.id, address.visitUrl);
    } catch (error) {
      if (!signal.aborted) tell(printable(`Main cannot be shown: ${(error as Error).message}`));
    } finally {
      triedAtMs = clock.now();
    }
  };
  const work = async () => {
    let shown: string | null = null;
    while (kept.wanted !== null && kept.wanted !== shown && !signal.aborted) {
      shown = kept.wanted;
      await show(shown);
    }
    working = undefined;
    await handOverInTime(againMs);
  };
  const handOver = async () => {
    if (!(await isUnderway(build.id).catch(() => true))) {
      working = undefined;
      return;
    }
    waitsFor = beingHandedOver;
    // A sandbox that has no next life is replaced.
    await main.handOver({ signal }).catch(() => {});
    // Shows also what was merged meanwhile.
    await work();
  };
  /** Before the life of main's sandbox ends, its next one begins. */
  const handOverInTime = async (leastMs = 0) => {
    clearTimeout(handingOver);
    const inMs = await main.msToHandover(clock.now(), { signal }).catch(() => undefined);
    if (inMs === undefined || signal.aborted) return;
    const begin = () => {
      working ??= handOver();
    };
    handingOver = setTimeout(begin, Math.max(leastMs, inMs));
    handingOver.unref();
  };
  const connect = async () => {
    if (kept.isNothing) throw new SlipwayError("connection_refused", "main has no dev server");
    try {
      return await main.connect();
    } catch (error) {
      if (kept.wanted !== null && clock.now() - triedAtMs >= againMs) working ??= work();
      throw error;
    }
  };
  const pageOnFailure = async (): Promise<Page> =>
    kept.isNothing && kept.wanted !== null
      ? { status: 404, text: await insteadOf(build.id, kept.wanted), refreshSeconds: refreshSeconds.merge }
      : { status: 503, text: waitsFor, refreshSeconds: refreshSeconds.soon };
  await using made = new AsyncDisposableStack();
  const { port: before, token } = kept;
  const address = made.use(
    await openAddress({
      port: devServerPort,
      usedPorts,
      connect,
      pageOnFailure,
      hostPort: before || undefined,
      token: token ?? undefined,
    }),
  );
  await save({ port: address.hostPort, token: address.token });
  if (before !== 0 && before !== address.hostPort) {
    onTrouble(build.id, `Port ${before} is in use: the preview is now at ${address.url}.`);
    onReady(build.id, address.visitUrl);
  }
  let wanting: Promise<unknown> = Promise.resolve();
  /** Stores the commit to show, in the order of the calls, however long reading each commit takes. */
  const want = async (commit: string): Promise<void> => {
    const reading = Promise.allSettled([main.canShow(commit, { signal }), wanting]);
    wanting = reading;
    const [read] = await reading;
    if (signal.aborted) return;
    if (read.status === "rejected") throw read.reason;
    await save({ wanted: commit, isNothing: !read.value });
  };
  const opened = made.move();
  // Main of an earlier process.
  if (kept.sandbox !== null) void handOverInTime();
  return {
    address: address.visitUrl,
    get isNothing(): boolean {
      return kept.isNothing;
    },
    want,
    async follow(commit: string): Promise<void> {
      await want(commit);
      working ??= work();
      await working;
    },
    async [Symbol.asyncDispose](): Promise<void> {
      ending.abort();
      clearTimeout(handingOver);
      await working;
      await saving(async () => {});
      await opened.disposeAsync();
    },
  };
}
