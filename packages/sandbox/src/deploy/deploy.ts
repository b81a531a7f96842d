import { randomUUID } from "node:crypto";
import { type CustomImage, SlipwayError } from "@slipway/contract";
import type { BuiltImage, CallOptions, SandboxProvider } from "../provider.ts";
import { cleanUp, type Made } from "./clean-up.ts";
import { runTrial, trialSteps } from "./trial.ts";

export const deploySteps = ["image", ...trialSteps, "clean-up"] as const;
export type DeployStep = (typeof deploySteps)[number];

/** A step that was carried out, and what was seen. */
export interface Measured {
  readonly step: DeployStep;
  readonly durationMs: number;
  readonly detail: string;
}

export interface DeployOptions extends CallOptions {
  readonly image?: string | Partial<CustomImage>;
  /** PEM; for previews whose certificates Node does not know. */
  readonly tunnelCa?: string | undefined;
  readonly onStep?: (step: DeployStep) => void;
  readonly onMeasured?: (measured: Measured) => void;
  /** Lines of the image's build. */
  readonly onProgress?: (line: string) => void;
}

export interface Deployment {
  readonly measured: readonly Measured[];
  /** Where the test sandbox could be seen, without its token. */
  readonly previewOrigin: string | null;
  /** Undefined: the provider is proven. */
  readonly failure?: { readonly step: DeployStep; readonly error: SlipwayError };
  /** What could not be removed, by kind and id; usually empty. */
  readonly left: readonly string[];
  /** Of all test sandboxes together. */
  readonly sandboxMs: number;
}

/**
 * Builds the image, and proves the provider with test sandboxes. Whatever happens, no sandbox and no snapshot of it stays;
 * after a failure the image that it built does not stay either.
 */
export async function deploy(provider: SandboxProvider, options: DeployOptions = {}): Promise<Deployment> {
  const { image = "default", onStep, onMeasured, onProgress, ...trial } = options;
  const { signal } = trial;
  const measured: Measured[] = [];
  const made: Made = { id: randomUUID(), sandboxes: [], startedAt: performance.now() };
  let current: DeployStep = "image";
  const step = async <T>(name: DeployStep, work: () => Promise<T>, tell: (result: T) => string): Promise<T> => {
    current = name;
    onStep?.(name);
    signal?.throwIfAborted();
    const startedAt = performance.now();
    const result = await work();
    const done = { step: name, durationMs: Math.round(performance.now() - startedAt), detail: tell(result) };
    measured.push(done);
    onMeasured?.(done);
    return result;
  };

  let built: BuiltImage | undefined;
  let previewOrigin: string | null = null;
  let failure: Deployment["failure"];
  try {
    built = await step(
      "image",
      () => provider.prepareImage(image, { signal, ...(onProgress && { onProgress }) }),
      (image) => (image === undefined ? "was there already" : "built"),
    );
    previewOrigin = await runTrial({ provider, image, made, step, ...trial });
  } catch (error) {
    failure = { step: current, error: known(error) };
  }
  onStep?.("clean-up");
  const cleaned = await cleanUp(provider, made, failure === undefined ? undefined : built);
  measured.push({ step: "clean-up", ...cleaned.measured });
  onMeasured?.({ step: "clean-up", ...cleaned.measured });
  const { left, sandboxMs } = cleaned;
  return { measured, previewOrigin, left, sandboxMs, ...(failure && { failure }) };
}

function known(error: unknown): SlipwayError {
  if (error instanceof SlipwayError) return error;
  const { name, message } = error as Error;
  return new SlipwayError(name === "AbortError" ? "aborted" : "internal", message, { cause: error });
}
