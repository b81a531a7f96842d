import type { Client } from "@slipway/client";
import { type BuildId, type BuildView, type EventView, hasCode } from "@slipway/contract";
import type { Context } from "../../../input/command.ts";
import { painter, toJson } from "../../../terminal/terminal.ts";
import { ask, canAsk } from "../ask.ts";
import { stageFailed } from "../stage-failure.ts";
import { eventText } from "./events.ts";
import { createLive } from "./live.ts";
import { lookAt } from "./look.ts";
import { isQuiet, milestoneText } from "./milestones.ts";

export interface Watched {
  readonly id: BuildId;
  /** The last known event. */
  readonly after: number;
  /** Called when the build may wait for its user. Resolves to undefined if it does not wait. */
  readonly onTurn?: ((event: EventView, signal: AbortSignal) => Promise<UserTurn | undefined>) | undefined;
}

export type UserTurn = "continue" | "leave";

export interface WatchEnd {
  readonly view: BuildView;
  /** The user detached; the build continues. */
  readonly left: boolean;
}

/**
 * Shows a build until it ends or waits for its user: redrawn in place on a terminal, as lines elsewhere, as JSON on request.
 * The first interrupt asks what to do if somebody can answer; otherwise, and the second time, it detaches.
 */
export async function watchBuild(context: Context, client: Client, watched: Watched): Promise<WatchEnd> {
  const { id, after, onTurn } = watched;
  const gone = new AbortController();
  const over = new AbortController();
  let failure: unknown;
  const fail = (error: unknown) => {
    if (gone.signal.aborted || over.signal.aborted) return;
    failure = error;
    gone.abort();
  };
  const isLive = !context.json && context.err.isTerminal && context.io.env.TERM !== "dumb";
  const paint = painter(context.err, context.io.env);
  using live = createLive(context.err);
  const look = lookAt(context, client, { id, live, signal: over.signal });

  /** Lines held back while a question is open. Null: no question is open. */
  let waiting: string[] | null = null;
  /** The order that answers one question may cause the next before the first has returned. */
  let questions = 0;
  const question = async <T>(put: () => Promise<T>): Promise<T> => {
    waiting ??= [];
    questions++;
    look.hide();
    try {
      return await put();
    } finally {
      questions--;
      if (questions === 0) {
        for (const line of waiting) live.line(line);
        waiting = null;
        look.show();
      }
    }
  };
  using _interrupts = context.interrupts.take((signal) => {
    if (waiting !== null || signal === "SIGTERM" || !canAsk(context)) return gone.abort();
    const asked = AbortSignal.any([gone.signal, over.signal]);
    question(async () => {
      if (await askToLeave(context, client, id, asked)) gone.abort();
    }).catch(fail);
  });
  const tell = async (event: EventView) => {
    if (context.json) return await context.out.write(`${toJson(event)}\n`);
    if (!isLive) return isQuiet(event) ? undefined : await context.note(eventText(event));
    const line = milestoneText(event, paint);
    if (line === undefined) return;
    if (waiting === null) live.line(line);
    else waiting.push(line);
  };

  const looking = isLive ? look.run().catch(fail) : undefined;
  try {
    for await (const event of client.builds.follow(id, { after, signal: gone.signal })) {
      await tell(event);
      look.news(event);
      if (event.type === "stage.failed") {
        look.hide();
        await stageFailed(context, event.data);
        look.show();
      }
      if (event.type !== "intent.drafted" && event.type !== "build.paused") continue;
      const answer = onTurn && (await question(() => onTurn(event, gone.signal)));
      if (answer === "leave") break;
      if (answer === "continue" || event.type === "intent.drafted") continue;
      if ((await client.builds.get(id, { signal: gone.signal })).status === "paused") break;
    }
    return { view: await client.builds.get(id, { signal: gone.signal }), left: false };
  } catch (error) {
    if (failure !== undefined) throw failure;
    if (!gone.signal.aborted) throw error;
    return { view: await client.builds.get(id), left: true };
  } finally {
    over.abort();
    await looking;
  }
}

/** Returns whether to detach. Orders give no output here: the build's own events report them. */
async function askToLeave(context: Context, client: Client, id: BuildId, asked: AbortSignal): Promise<boolean> {
  try {
    const answer = await ask(context, "[d]etach (the build continues), [p]ause, [c]ancel or [b]ack?", asked);
    if (answer === "p") await client.builds.pause(id, { signal: asked });
    else if (answer === "c") await client.builds.cancel(id, { signal: asked });
    return answer === "d" || answer === "";
  } catch (error) {
    if (asked.aborted) await context.err.write("\n");
    else if (!hasCode(error, "build_ended")) throw error;
    return false;
  }
}
