import { randomBytes } from "node:crypto";
import { SlipwayError } from "@slipway/contract";
import type { Sandbox } from "modal";
import type { WorkOptions } from "../../../../keeper/sharing.ts";
import { inside } from "../../inside.ts";
import type { Origin } from "../../record.ts";
import type { Account } from "../account/account.ts";
import type { Slots } from "../account/slots.ts";
import { unpackScript } from "./boot.ts";
import type { Store } from "./store.ts";

export interface LayerParts {
  readonly account: Account;
  readonly slots: Slots;
  readonly store: Store;
  /** For every sandbox of this keeper. */
  readonly tags: Readonly<Record<string, string>>;
  /** Names of the sandboxes that are at work now: nobody takes them for strays. */
  readonly working: Set<string>;
}

const limitMs = 30 * 60_000;
const archive = `${inside.root}/archive.tgz`;
/** The least that the link program runs on. */
const leastNode = 22;

/** An image with the files of another one and more of the store, made in a sandbox that is ended again. */
export async function addLayer(
  parts: LayerParts,
  { imageId, store: has }: Origin,
  entries: readonly string[],
  { signal, progress = () => {} }: WorkOptions,
): Promise<Origin> {
  const { account, slots, store, tags, working } = parts;
  const name = `layer-${randomBytes(10).toString("hex")}`;
  await slots.take(name, signal);
  working.add(name);
  let sandbox: Sandbox | undefined;
  try {
    progress("Boot a sandbox to add Slipway's programs to the image.");
    const params = { name, tags: { ...tags, "slipway-layer": name }, timeoutMs: limitMs, blockNetwork: true };
    sandbox = await account.create(imageId, params, signal);
    const withNode = !(await hasNode(account, sandbox, has));
    await using packed = await store.pack(entries, { withNode });
    progress(`Write ${packed.entries.length} directories.`);
    await write(account, sandbox, packed.path, signal);
    progress("Keep its files as an image.");
    return { imageId: await account.snapshot(sandbox), store: [...has, ...packed.entries] };
  } finally {
    // Its create may have been done without an answer.
    const running = sandbox ?? (await account.find(name).catch(() => undefined));
    try {
      if (running !== undefined) await account.terminate(running.sandboxId);
    } finally {
      working.delete(name);
      slots.release(name);
    }
  }
}

async function hasNode(account: Account, sandbox: Sandbox, has: readonly string[]): Promise<boolean> {
  if (has.length > 0) return true;
  const { exitCode, output } = await runIn(account, sandbox, "node --version");
  return exitCode === 0 && Number(/^v(\d+)\./.exec(output)?.[1] ?? 0) >= leastNode;
}

async function write(account: Account, sandbox: Sandbox, path: string, signal: AbortSignal): Promise<void> {
  const doing = "write Slipway's programs";
  await account.ask(doing, () => sandbox.filesystem.copyFromLocal(path, archive), "other", signal);
  const { exitCode, output } = await runIn(account, sandbox, unpackScript(archive));
  if (exitCode === 0) return;
  throw new SlipwayError("image_build_failed", `Slipway's programs cannot be added to the image:\n${output}`);
}

const commandLimitMs = 5 * 60_000;

async function runIn(
  account: Account,
  sandbox: Sandbox,
  script: string,
): Promise<{ exitCode: number; output: string }> {
  return await account.ask("run a command", async () => {
    const running = await sandbox.exec(["/bin/sh", "-c", script], { timeoutMs: commandLimitMs });
    const [exitCode, stdout, stderr] = await Promise.all([
      running.wait(),
      endOf(running.stdout),
      endOf(running.stderr),
    ]);
    return { exitCode, output: (stdout + stderr).slice(-mostOutput) };
  });
}

const mostOutput = 2000;

/** The last characters of a stream: the steps of an image decide what its programs print. */
export async function endOf(stream: AsyncIterable<string>): Promise<string> {
  let end = "";
  for await (const text of stream) end = (end + text).slice(-mostOutput);
  return end;
}
