import type { Sandbox } from "@slipway/sandbox";
import type { Context, Run } from "../../input/command.ts";
import { sandboxOf } from "../../input/resolve.ts";

type Transition = (sandbox: Sandbox, options: { signal: AbortSignal }) => Promise<void>;

function transition(change: Transition, doing: string): Run {
  return async (context: Context) => {
    const { signal } = context.interrupts;
    const sandbox = await sandboxOf(context);
    context.progress.status(doing);
    await change(sandbox, { signal });
    context.progress.clear();
    const info = await sandbox.info({ signal });
    await context.result(info, `${info.id} ${info.state}\n`);
  };
}

export const sleep = transition((sandbox, options) => sandbox.sleep(options), "freezing");
export const wake = transition((sandbox, options) => sandbox.wake(options), "waking");
export const stop = transition((sandbox, options) => sandbox.stop(options), "stopping");
export const start = transition((sandbox, options) => sandbox.start(options), "starting");
