import type { SandboxEvent } from "@slipway/contract";
import type { Context } from "../../input/command.ts";
import { findSandboxId } from "../../input/resolve.ts";
import { toJson } from "../../terminal/terminal.ts";

export async function run(context: Context): Promise<number> {
  const { args } = context;
  const follow = args.flag("follow");
  const after = args.integer("after", { min: 0, max: Number.MAX_SAFE_INTEGER }) ?? 0;
  const provider = await context.provider();
  const id = args.optional("id");
  const sandbox = id === undefined ? undefined : await findSandboxId(provider, id, context.interrupts.signal);
  const ended = new AbortController();
  using _interrupts = context.interrupts.take(() => ended.abort());
  try {
    for await (const event of provider.events({ after, sandbox, follow, signal: ended.signal })) {
      await context.out.write(context.json ? `${toJson(event)}\n` : `${line(event, context)}\n`);
    }
  } catch (error) {
    if (!ended.signal.aborted) throw error;
  }
  return 0;
}

function line(event: SandboxEvent, context: Context): string {
  const text = `${event.sandbox}  ${event.type}  ${context.clean(detail(event))}`.trimEnd();
  return `${context.paint("dim", new Date(event.at).toISOString())}  ${text}`;
}

function detail(event: SandboxEvent): string {
  switch (event.type) {
    case "sandbox.state_changed":
      return `${event.from ? `${event.from} -> ` : ""}${event.to} (${event.reason})`;
    case "sandbox.expiring":
      return `${event.reason} at ${new Date(event.expiresAt).toISOString()}`;
    case "sandbox.destroyed":
      return event.reason;
    case "sandbox.adopted":
      return "";
    case "sandbox.out_of_memory":
      return `${event.kills} killed`;
    case "snapshot.created":
      return `${event.snapshot}${event.checkpoint ? " (checkpoint)" : ""}`;
    case "snapshot.failed":
      return event.message;
    case "egress.refused":
      return `${event.host}:${event.port} (${event.rule})${event.count > 1 ? `, ${event.count} times` : ""}`;
  }
}
