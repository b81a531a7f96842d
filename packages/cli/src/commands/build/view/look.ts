import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "@slipway/client";
import { type BuildId, type EventView, hasCode, viewAfter } from "@slipway/contract";
import type { Context } from "../../../input/command.ts";
import { painter } from "../../../terminal/terminal.ts";
import type { Live } from "./live.ts";
import { drawBuild } from "./screen.ts";
import type { Looked } from "./task-row.ts";

/** The least time between two looks, and the most: elapsed time and cost change without events. */
const soonestMs = 150;
const latestMs = 1000;

/** Polls a build and draws it. */
export function lookAt(
  { err, io }: Context,
  client: Client,
  { id, live, signal }: { readonly id: BuildId; readonly live: Live; readonly signal: AbortSignal },
) {
  const paint = painter(err, io.env);
  let looked: Looked | undefined;
  let isHidden = false;
  let wake = Promise.withResolvers<void>();
  /** Events that the last look may not have seen. */
  let news: EventView[] = [];
  const take = (seen: Looked | undefined) => {
    if (seen === undefined) return;
    looked = { ...seen, view: news.reduce(viewAfter, seen.view) };
    news = news.filter(({ sequence }) => sequence > seen.view.lastEvent);
  };
  const draw = () => {
    if (looked === undefined || isHidden || signal.aborted) return;
    const { cols, rows } = err.size();
    live.draw(drawBuild(looked, { cols, rows, nowMs: Date.now(), paint }));
  };
  return {
    /** Runs until the signal aborts. */
    async run(): Promise<void> {
      const stopResizes = err.onResize(draw);
      while (!signal.aborted) {
        take(await lookOnce(client, id, looked, signal));
        draw();
        await delay(soonestMs, undefined, { signal }).catch(() => undefined);
        await Promise.race([wake.promise, delay(latestMs, undefined, { signal }).catch(() => undefined)]);
        wake = Promise.withResolvers<void>();
      }
      stopResizes();
    },
    news(event: EventView): void {
      news.push(event);
      if (looked !== undefined) looked = { ...looked, view: viewAfter(looked.view, event) };
      draw();
      // A progress event is complete by itself; others may change what only the server knows.
      if (event.type !== "attempt.progress") wake.resolve();
    },
    hide(): void {
      isHidden = true;
      live.clear();
    },
    show(): void {
      isHidden = false;
      draw();
    },
  };
}

/** Keeps the last view while the server cannot be read. The loop that follows the events notices a permanent loss. */
async function lookOnce(
  client: Client,
  id: BuildId,
  before: Looked | undefined,
  signal: AbortSignal,
): Promise<Looked | undefined> {
  try {
    const view = await client.builds.get(id, { signal });
    const hasIntent = view.planning === null || view.planning.stage === "plan";
    const isNewPlan = view.planning === null && before?.plan?.tasks.length !== view.taskList.length;
    return {
      view,
      intent: before?.intent ?? (hasIntent ? (await client.builds.intent(id, { signal })).intent : null),
      plan: isNewPlan ? await client.builds.plan(id, { signal }) : (before?.plan ?? null),
    };
  } catch (error) {
    if (hasCode(error, "aborted") || hasCode(error, "server_unavailable") || hasCode(error, "not_ready")) return before;
    throw error;
  }
}
