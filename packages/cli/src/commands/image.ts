import type { Context } from "../command.ts";
import { formatDuration } from "../duration.ts";
import { UsageError } from "../failure.ts";
import { imageChoice } from "../request.ts";
import { prepareImage } from "./create.ts";

export async function run(context: Context): Promise<void> {
  const image = imageChoice(context.args);
  if (image === undefined) throw new UsageError("No image is named.", "Give --image, --apt, --npm, --pip or --run.");
  const startedAt = Date.now();
  await prepareImage(context, await context.provider(), image);
  const durationMs = Date.now() - startedAt;
  await context.result({ image, durationMs }, `the image is ready, after ${formatDuration(durationMs)}\n`);
}
