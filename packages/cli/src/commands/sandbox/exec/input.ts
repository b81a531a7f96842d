import { hasCode } from "@slipway/contract";
import type { Exec } from "@slipway/sandbox";
import type { InputStream } from "../../../terminal/io.ts";

/** Passes standard input on until it ends, the command does, or it is disposed. Reads no faster than the command. */
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
    // A paused standard input does not keep the program alive.
    stdin.pause();
  };
  const failed = (error: unknown) => {
    stop();
    // A command may end without reading all that it is given.
    if (!hasCode(error, "exec_ended")) onFailure(error);
  };
  stdin.on("data", onData).on("end", onEnd);
  stdin.resume();
  return { [Symbol.dispose]: stop };
}

/** Keys go to the sandbox as they are typed. Disposing gives the terminal back as it was. */
export function rawTerminal(stdin: InputStream): Disposable {
  if (!stdin.isTTY || !stdin.setRawMode) return { [Symbol.dispose]() {} };
  stdin.setRawMode(true);
  return { [Symbol.dispose]: () => void stdin.setRawMode?.(false) };
}
