import { SlipwayError } from "@slipway/contract";
import type { Context } from "../../../input/command.ts";
import { UsageError } from "../../../input/failure.ts";
import { findSandbox } from "../../../input/resolve.ts";
import { formatBytes } from "../../../terminal/terminal.ts";
import { copyIn } from "./in.ts";
import { copyOut } from "./out.ts";
import { type Copied, type Endpoint, parseEndpoint } from "./transfer.ts";

export async function run(context: Context): Promise<void> {
  const [from, to] = [parseEndpoint(context.args.argument("from")), parseEndpoint(context.args.argument("to"))];
  const copied = await copy(context, from, to);
  context.progress.clear();
  for (const { path, reason } of copied.leftOut) await context.note(`skipped ${path}: ${reason}`);
  if (to.kind === "standard") return;
  await context.result(copied, "");
  if (context.out.isTerminal) {
    const what = copied.entries === 1 ? "1 entry" : `${copied.entries} entries`;
    await context.note(`copied ${what}, ${formatBytes(copied.bytes)}`);
  }
}

async function copy(context: Context, from: Endpoint, to: Endpoint): Promise<Copied> {
  const { signal } = context.interrupts;
  if (from.kind === "sandbox" && to.kind === "sandbox") {
    throw new UsageError("Both paths are in a sandbox.", "Copy out first, then in; or fork the sandbox.");
  }
  if (from.kind === "sandbox" && to.kind !== "sandbox") {
    if (to.kind === "standard" && context.json)
      throw new SlipwayError("invalid_request", "--json cannot be combined with -.");
    return copyOut(context, await findSandbox(await context.provider(), from.id, signal), from.path, to);
  }
  if (to.kind === "sandbox" && from.kind !== "sandbox") {
    return copyIn(context, from, await findSandbox(await context.provider(), to.id, signal), to.path);
  }
  throw new UsageError("Neither path is in a sandbox.", "Write one of them as <id>:<path>.");
}
