import type { ExecChunk, ExecExit } from "@slipway/contract";
import type { Exec } from "@slipway/sandbox";
import type { Context } from "../../../input/command.ts";
import { Interrupted } from "../../../input/failure.ts";
import { BrokenPipe } from "../../../terminal/io.ts";
import { passInput, rawTerminal } from "./input.ts";

export interface StreamOptions {
  readonly input: boolean;
  readonly terminal: boolean;
  /** `forward` interrupts the program; `detach` leaves it running. */
  readonly onInterrupt: "forward" | "detach";
}

/** Connects a program to this one until its observed end. A slow sink slows the program. */
export async function streamExec(
  context: Context,
  exec: Exec,
  options: StreamOptions,
  sink: (chunk: ExecChunk) => Promise<void>,
): Promise<ExecExit> {
  const { input, terminal, onInterrupt } = options;
  const ended = new AbortController();
  using _interrupts = context.interrupts.take(interruptHandler(context, exec, options, ended));
  using _raw = terminal && input ? rawTerminal(context.io.stdin) : undefined;
  using _size = terminal ? followSize(context, exec) : undefined;
  using _input = input ? passInput(context.io.stdin, exec, (error) => ended.abort(error)) : undefined;
  try {
    for await (const chunk of exec.output({ signal: ended.signal })) await sink(chunk);
    return await exec.wait({ signal: ended.signal });
  } catch (error) {
    if (ended.signal.aborted) throw ended.signal.reason;
    // As in a shell's pipe, a program whose output has no reader gets SIGPIPE.
    const pointless = error instanceof BrokenPipe && onInterrupt === "forward";
    if (pointless) await exec.signal("SIGPIPE", { tree: true }).catch(() => {});
    throw error;
  }
}

type InterruptHandler = (name: "SIGINT" | "SIGTERM") => void;

/** Forwards the first interrupt to the whole process tree; the second kills it. */
function interruptHandler(
  context: Context,
  exec: Exec,
  options: StreamOptions,
  ended: AbortController,
): InterruptHandler {
  let count = 0;
  return (name) => {
    const letGo = () => ended.abort(new Interrupted(name));
    if (options.onInterrupt === "detach") return letGo();
    // A session ends with its terminal, as when a window is closed.
    if (options.terminal) return void exec.signal("SIGHUP", { tree: true }).then(letGo, letGo);
    const sent = ++count === 1 ? exec.signal(name, { tree: true }) : exec.kill({ graceMs: 0 });
    // An exec that has just ended needs no signal.
    sent.catch(() => {});
    if (count === 1 && context.err.isTerminal)
      context.note("interrupting; press Ctrl-C again to kill it").catch(() => {});
  };
}

function followSize(context: Context, exec: Exec): Disposable {
  const remove = context.out.onResize(() => {
    // The next resize makes up for a lost one.
    exec.resize(context.out.size()).catch(() => {});
  });
  return { [Symbol.dispose]: remove };
}
