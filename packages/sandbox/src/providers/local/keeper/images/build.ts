import { lstatSync, renameSync } from "node:fs";
import { join } from "node:path";
import {
  type CreateSandbox,
  createSandboxSchema,
  hasCode,
  newId,
  type SandboxId,
  SlipwayError,
} from "@slipway/contract";
import { dialAgent } from "../../../../agent/connection.ts";
import { type ExecHost, startExec } from "../../../../agent/exec/exec.ts";
import { logsIn } from "../../../../agent/exec/logs.ts";
import type { Lifecycle } from "../../../../keeper/boxes/lifecycle.ts";
import { createBuildOutput } from "../../../../keeper/build-output.ts";
import type { WorkOptions } from "../../../../keeper/sharing.ts";
import { baseEnvironment } from "../../launch/skeleton.ts";
import type { Layout } from "../../layout.ts";
import type { LayerId, RootImage } from "../../record.ts";
import type { Box, Boxes } from "../boxes/boxes.ts";
import type { Layers } from "../boxes/layers.ts";
import type { LocalRuntime } from "../boxes/runtime.ts";
import type { Recipe, Step } from "./recipes.ts";

export interface ImageBuilder {
  /**
   * Runs a recipe on a base, in a sandbox that it destroys. `keep` gets the new layers, topmost first, and must record
   * them.
   */
  build<T>(request: BuildRequest, keep: (layers: readonly LayerId[]) => Promise<T> | T): Promise<T>;
  /** The base of a build's own sandbox; undefined for any other request. */
  baseOf(request: CreateSandbox): RootImage | undefined;
  /** Destroys the sandboxes of builds that a keeper's death cut short. */
  endOrphans(): Promise<void>;
}

export interface BuildRequest extends WorkOptions {
  readonly base: RootImage;
  readonly recipe: Recipe;
}

export interface BuilderParts {
  readonly layout: Layout;
  readonly boxes: Boxes;
  readonly layers: Layers;
  readonly lifecycle: Pick<Lifecycle, "create" | "stop" | "destroy">;
  readonly capture: LocalRuntime["capture"];
}

/** Labels a build's sandbox with its own id, which no other create can know ahead. */
const buildLabel = "slipway.image-build";
const buildLimitMs = 60 * 60_000;

export function createImageBuilder(parts: BuilderParts): ImageBuilder {
  const { boxes, lifecycle } = parts;
  const bases = new Map<string, RootImage>();
  return {
    async build({ base, recipe, ...options }, keep) {
      const id = newId("sbx");
      bases.set(id, base);
      try {
        await lifecycle.create({ id, request: buildSandbox(id), tools: [] }, options.signal);
        await runRecipe(parts, id, recipe, options).catch((error) => explain(boxes, id, options.signal, error));
        await lifecycle.stop(id);
        const box = boxes.get(id);
        return await boxes.exclusive(box, () => keepLayers(parts, box, recipe, keep));
      } finally {
        bases.delete(id);
        await gone(lifecycle.destroy, boxes, id);
      }
    },
    baseOf: ({ labels }) => bases.get(labels[buildLabel] ?? ""),
    async endOrphans() {
      const orphans = [...boxes.all()].filter(({ id, record }) => record.request.labels[buildLabel] === id);
      for (const { id } of orphans) await gone(lifecycle.destroy, boxes, id);
    },
  };
}

function buildSandbox(id: SandboxId): CreateSandbox {
  return createSandboxSchema.parse({
    user: "root",
    workdir: "/",
    processes: 2048,
    lifetimeMs: buildLimitMs,
    idleMs: null,
    ports: [],
    network: { registries: true },
    labels: { [buildLabel]: id },
  });
}

async function runRecipe(
  { layout, boxes }: BuilderParts,
  id: SandboxId,
  { name, needs = [], steps }: Recipe,
  options: WorkOptions,
): Promise<void> {
  const box = layout.box(id);
  const isAlive = async () => boxes.find(id)?.record.state === "running";
  const host: ExecHost = { dial: dialAgent(box.agentSocket), logs: logsIn(box.execs), isAlive };
  for (const { test, install } of needs) {
    const { failure } = await runStep(host, test, { ...options, progress: undefined });
    if (failure !== null) throw new SlipwayError("component_missing", `Cannot build the image ${name}: ${install}`);
  }
  for (const step of steps) {
    const { failure, lastLines } = await runStep(host, step, options);
    if (failure === null) continue;
    throw new SlipwayError(
      "image_build_failed",
      `${step.title} ${failure}${lastLines === "" ? "" : `:\n${lastLines}`}`,
    );
  }
}

/** Reports why the build's sandbox ended, instead of the error that followed. */
async function explain(boxes: Boxes, id: SandboxId, signal: AbortSignal, error: unknown): Promise<never> {
  // The program ends before the sandbox's end is recorded.
  await boxes.find(id)?.queue;
  const record = boxes.find(id)?.record;
  if (record?.state === "running" || signal.aborted) throw error;
  const reason = record?.reason ?? "destroyed";
  throw new SlipwayError("image_build_failed", `The sandbox of the build has ended (${reason}).`, { cause: error });
}

async function runStep(
  host: ExecHost,
  { title, argv, env = {} }: Step,
  { signal, progress = () => {} }: WorkOptions,
): Promise<{ failure: string | null; lastLines: string }> {
  progress(title);
  const environment = { ...baseEnvironment("root"), DEBIAN_FRONTEND: "noninteractive", ...env };
  const start = { id: newId("exc"), argv, cwd: "/", env: environment, timeoutMs: buildLimitMs } as const;
  await using exec = await startExec(host, { ...start, stdin: "none", background: false }, signal);
  const output = createBuildOutput(progress);
  for await (const chunk of exec.output({ signal })) {
    if (chunk.type !== "output_truncated") output.push(chunk.type, chunk.data);
  }
  output.end();
  const { reason, exitCode, signal: killer } = await exec.wait({ signal });
  const end = reason === "exited" ? `failed with exit code ${exitCode}` : `ended (${killer ?? reason})`;
  return { failure: exitCode === 0 ? null : end, lastLines: output.lastLines };
}

/** The sandbox is stopped: nothing changes its files. */
async function keepLayers<T>(
  { layers, capture }: BuilderParts,
  box: Box,
  { root }: Recipe,
  keep: (layers: readonly LayerId[]) => Promise<T> | T,
): Promise<T> {
  using files = await capture(box);
  const own = files.origin.lowers.slice(0, files.origin.lowers.length - box.record.image.layers.length);
  if (root === undefined) return await keep(own);
  const tree = join(layers.tree(own[0] ?? ""), root);
  // With a link, a directory of the host would become the layer.
  if (!lstatSync(tree).isDirectory()) throw new SlipwayError("image_build_failed", `${root} is not a directory.`);
  using layer = await layers.add((directory) => renameSync(tree, join(directory, "fs")));
  return await keep([layer.id]);
}

async function gone(destroy: Lifecycle["destroy"], boxes: Boxes, id: SandboxId): Promise<void> {
  if (boxes.find(id) === undefined) return;
  await destroy(id).catch((error: unknown) => {
    if (!hasCode(error, "sandbox_not_found")) throw error;
  });
}
