import { hasCode } from "@slipway/contract";
import type { Exec } from "@slipway/sandbox";
import type { InputStream } from "../../../terminal/io.ts";

/** Forwards standard input until it or the program ends, or it is disposed. Reads no faster than the program. */
export function passInput(stdin: InputStream, exec: Exec, onFailure: (error: unknown) => void): Disposable {
  const onData = (data: Buffer) => {
    stdin.pause();
    exec.write(data).then(
      () => active && stdin.resume(),
      (error: unknown) => failed(error),
    );
  };
  const onEnd = () => {
    stop();
    exec.end().catch(failed);
  };
  let active = true;
  const stop = () => {
    if (!active) return;
    active = false;
    stdin.off("data", onData).off("end", onEnd);
    // Paused standard input does not keep this process alive.
    stdin.pause();
  };
  const failed = (error: unknown) => {
    stop();
    // A program may end without reading all of its input.
    if (!hasCode(error, "exec_ended")) onFailure(error);
  };
  stdin.on("data", onData).on("end", onEnd);
  stdin.resume();
  return { [Symbol.dispose]: stop };
}

/** Sends keys to the sandbox as they are typed. Disposing restores the terminal. */
export function rawTerminal(stdin: InputStream): Disposable {
  if (!stdin.isTTY || !stdin.setRawMode) return { [Symbol.dispose]() {} };
  stdin.setRawMode(true);
  return { [Symbol.dispose]: () => void stdin.setRawMode?.(false) };
}
