import type { ExecChunk } from "@slipway/contract";
import type { Exec } from "@slipway/sandbox";
import type { Context } from "../../../input/command.ts";
import { collector } from "./collect.ts";
import { exitCodeOf, explainExit } from "./exit-code.ts";
import { type StreamOptions, streamExec } from "./stream.ts";

/** Shows a command until its end, as streams or as one JSON document, and answers with its exit code. */
export async function reportExec(context: Context, exec: Exec, options: StreamOptions): Promise<number> {
  if (context.json) {
    const { take, collected } = collector();
    const exit = await streamExec(context, exec, options, take);
    await context.result({ execId: exec.id, exit, ...collected() }, "");
    return exitCodeOf(exit);
  }
  const exit = await streamExec(context, exec, options, (chunk) => passOn(context, chunk));
  const explained = explainExit(exit);
  if (explained) await context.note(`slipway: ${explained}`);
  return exitCodeOf(exit);
}

async function passOn(context: Context, chunk: ExecChunk): Promise<void> {
  if (chunk.type === "stdout") await context.out.write(chunk.data);
  else if (chunk.type === "stderr") await context.err.write(chunk.data);
  else await context.note("slipway: no more output was kept than this; what came after is gone");
}
