import { type SandboxInfo, type SandboxState, sandboxStates } from "@slipway/contract";
import type { Context } from "../../input/command.ts";
import { formatDuration } from "../../input/duration.ts";
import { oneOf } from "../../input/request.ts";
import { nameLabel } from "../../input/resolve.ts";
import { parsePairs, splitCommas } from "../../input/values.ts";
import { formatTable } from "../../terminal/terminal.ts";

const liveStates: readonly SandboxState[] = ["creating", "running", "sleeping"];

export async function run(context: Context): Promise<void> {
  const { args, interrupts } = context;
  const states = splitCommas(args.list("state")).map((text) => oneOf(sandboxStates, text, "--state"));
  const labels = parsePairs(args.list("label"), "--label");
  const provider = await context.provider();
  const found = await provider.list({ labels }, { signal: interrupts.signal });
  const wanted = states.length > 0 ? states : args.flag("all") ? sandboxStates : liveStates;
  const shown = found.filter((info) => wanted.includes(info.state)).sort((a, b) => a.createdAt - b.createdAt);
  if (!context.json && args.flag("quiet")) return context.out.write(shown.map((info) => `${info.id}\n`).join(""));
  await context.result(shown, () => table(shown, context));
  const hidden = states.length > 0 ? 0 : found.length - shown.length;
  if (hidden > 0) await context.note(`${hidden} more (stopped or failed); --all shows them.`);
  else if (shown.length === 0) await context.note("No sandboxes. Create one: slipway sandbox create");
}

function table(infos: readonly SandboxInfo[], context: Context): string {
  const now = Date.now();
  const rows = infos.map((info) => [
    info.id,
    context.clean(info.labels[nameLabel] ?? "-"),
    info.state,
    info.reason,
    typeof info.image === "string" ? info.image : `${info.image.base} +`,
    `${info.limits.cpu} cpu, ${info.limits.memoryMb} MB`,
    `${formatDuration(now - info.createdAt)} ago`,
    expiry(info, now),
  ]);
  return formatTable(["ID", "NAME", "STATE", "REASON", "IMAGE", "LIMITS", "CREATED", "EXPIRES"], rows, context.paint);
}

function expiry(info: SandboxInfo, now: number): string {
  if (!liveStates.includes(info.state)) return "-";
  return info.expiresAt > now ? `in ${formatDuration(info.expiresAt - now)}` : "now";
}
