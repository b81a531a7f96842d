import type { Context } from "../../input/command.ts";
import { formatDuration } from "../../input/duration.ts";
import { UsageError } from "../../input/failure.ts";
import { imageChoice } from "../../input/request.ts";
import { prepareImage } from "../sandbox/create.ts";

export async function run(context: Context): Promise<void> {
  const named = context.args.optional("image");
  if (named !== undefined && context.args.text("image") !== undefined)
    throw new UsageError("The image is named twice.", "Give the argument or --image.");
  const image = imageChoice(context.args, named);
  if (image === undefined)
    throw new UsageError("No image is named.", "Give a name such as node24, or --apt, --npm, --pip or --run.");
  const startedAt = Date.now();
  await prepareImage(context, await context.provider(), image);
  const durationMs = Date.now() - startedAt;
  await context.result({ image, durationMs }, `image ready after ${formatDuration(durationMs)}\n`);
}
