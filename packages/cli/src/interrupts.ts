import type { Interrupts } from "./input/command.ts";
import { Interrupted } from "./input/failure.ts";
import type { Io } from "./terminal/io.ts";

/**
 * The first interrupt aborts the work; the next one has no listener and ends the program at once. A command can take
 * interrupts instead.
 */
export function interruptsOf(io: Io): Interrupts & Disposable {
  const controller = new AbortController();
  const handlers: ((signal: "SIGINT" | "SIGTERM") => void)[] = [];
  const removals = (["SIGINT", "SIGTERM"] as const).map((name) =>
    io.onSignal(name, () => {
      const handler = handlers.at(-1);
      if (handler) return handler(name);
      stop();
      controller.abort(new Interrupted(name));
    }),
  );
  const stop = () => {
    for (const remove of removals.splice(0)) remove();
  };
  return {
    signal: controller.signal,
    take(handler) {
      handlers.push(handler);
      return { [Symbol.dispose]: () => void handlers.splice(handlers.indexOf(handler), 1) };
    },
    [Symbol.dispose]: stop,
  };
}
