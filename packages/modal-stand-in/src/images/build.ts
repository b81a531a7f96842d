import { posix } from "node:path";
import type { SnapshotId } from "@slipway/contract";
import type { Exec } from "@slipway/sandbox";
import { type Box, type Boxes, workLifetimeMs } from "../boxes/boxes.ts";
import type { StoredTree } from "../objects/stored-tree.ts";
import type { Instruction } from "./dockerfile.ts";

/** What a sandbox of an image starts with. */
export interface ImageContent {
  /** Null while nobody has changed the machine's own root. */
  readonly snapshot: SnapshotId | null;
  readonly environment: Readonly<Record<string, string>>;
  readonly workdir: string | null;
  readonly entrypoint: readonly string[];
  /** Of the snapshot of a directory, which can be mounted. */
  readonly directory?: StoredTree;
}

export interface BuildRequest {
  readonly base: ImageContent;
  readonly instructions: readonly Instruction[];
  /** For the commands, and kept out of the image. */
  readonly secrets: Readonly<Record<string, string>>;
  readonly log: (text: string) => void;
}

export class BuildFailed extends Error {}

/** Carries the steps out, in a sandbox of the base when there is something to run, and keeps its files. */
export async function buildImage(
  boxes: Boxes,
  { base, instructions, secrets, log }: BuildRequest,
): Promise<ImageContent> {
  let content = base;
  let box: Box | null = null;
  const open = async (): Promise<Box> => {
    box ??= await boxes.create({
      snapshot: base.snapshot,
      environment: {},
      ports: [],
      network: { registries: true },
      lifetimeMs: workLifetimeMs,
    });
    return box;
  };
  try {
    for (const step of instructions) {
      switch (step.type) {
        case "environment":
          content = { ...content, environment: { ...content.environment, ...step.variables } };
          break;
        case "workdir": {
          const workdir = posix.resolve(content.workdir ?? "/", step.path);
          content = { ...content, workdir };
          await runStep(await open(), ["mkdir", "-p", "--", workdir], "/", {}, log);
          break;
        }
        case "entrypoint":
          content = { ...content, entrypoint: step.argv };
          break;
        case "run":
          log(`=> RUN ${step.text}\n`);
          await runStep(await open(), step.argv, content.workdir ?? "/", { ...content.environment, ...secrets }, log);
          break;
        case "from":
          break;
      }
    }
    return box === null ? content : { ...content, snapshot: (await (box as Box).snapshot()).id };
  } finally {
    await (box as Box | null)?.destroy();
  }
}

async function runStep(
  box: Box,
  argv: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>>,
  log: (text: string) => void,
): Promise<void> {
  await using exec: Exec = await box.exec({ argv: [...argv], cwd, env: { ...env }, timeoutMs: null });
  let last = "";
  for await (const chunk of exec.output()) {
    if (chunk.type === "output_truncated") continue;
    const text = Buffer.from(chunk.data).toString();
    log(text);
    last = `${last}${text}`.slice(-2000);
  }
  const { reason, exitCode, signal } = await exec.wait();
  if (exitCode === 0) return;
  const how = reason === "exited" ? `exited with code ${exitCode}` : `ended (${signal ?? reason})`;
  throw new BuildFailed(`${argv.at(-1)} ${how}\n${last}`);
}
