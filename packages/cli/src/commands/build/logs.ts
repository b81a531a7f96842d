import type { Client } from "@slipway/client";
import type { BuildId, EventView } from "@slipway/contract";
import type { Context } from "../../input/command.ts";
import { buildOf } from "../../input/resolve.ts";
import { toJson } from "../../terminal/terminal.ts";
import { eventText } from "./view/events.ts";

export async function run(context: Context): Promise<number> {
  const { args } = context;
  const after = args.integer("after", { min: 0, max: Number.MAX_SAFE_INTEGER }) ?? 0;
  const { client, id, signal } = await buildOf(context);
  const print = (event: EventView) => context.out.write(context.json ? `${toJson(event)}\n` : line(event, context));
  if (args.flag("follow")) return await follow(context, client, { id, after, print });
  for (let from = after; ; ) {
    const { events, next } = await client.builds.events(id, { after: from, limit: 500 }, { signal });
    for (const event of events) await print(event);
    if (events.length === 0) return 0;
    from = next;
  }
}

interface Followed {
  readonly id: BuildId;
  readonly after: number;
  print(event: EventView): Promise<void>;
}

/** An interrupt stops the output and is a success. */
async function follow(context: Context, client: Client, { id, after, print }: Followed): Promise<number> {
  const ended = new AbortController();
  using _interrupts = context.interrupts.take(() => ended.abort());
  try {
    for await (const event of client.builds.follow(id, { after, signal: ended.signal })) await print(event);
    const { status } = await client.builds.get(id, { signal: ended.signal });
    return status === "succeeded" ? 0 : 1;
  } catch (error) {
    if (!ended.signal.aborted) throw error;
    await context.note(`The build continues: slipway logs -f ${id}`);
    return 0;
  }
}

function line(event: EventView, { paint }: Context): string {
  return `${paint("dim", new Date(event.at).toISOString())}  ${eventText(event)}\n`;
}
