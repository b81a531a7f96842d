import type { Socket } from "node:net";
import { createInterface } from "node:readline";
import type { WorkItem, WorkingBuild } from "@slipway/engine";
import type { AttemptName } from "./fate.ts";
import type { Notice, Taken } from "./host.ts";

/** What the simulated world says to a coordinator. */
export type WorldMessage =
  /** Numbered, and said again over another connection until it is taken. */
  | { readonly type: "notice"; readonly number: number; readonly notice: Notice }
  | { readonly type: "done"; readonly order: number; readonly alive: readonly AttemptName[] }
  /** A sign of life of all sandboxes that there are. */
  | { readonly type: "beat"; readonly alive: readonly AttemptName[] };

/** What a coordinator says to the simulated world. */
export type CoordinatorMessage =
  | { readonly type: "taken"; readonly number: number; readonly taken: Taken }
  | {
      readonly type: "order";
      readonly order: number;
      readonly method: "carryOut" | "reattach";
      readonly build: WorkingBuild;
      readonly items: readonly WorkItem[];
    };

/** JSON, a line each. Both ends are programs of one test: what comes is trusted. */
export interface Line<Out> {
  send(message: Out): void;
  close(): void;
  readonly closed: Promise<void>;
}

export function openLine<In, Out>(socket: Socket, onMessage: (message: In) => void): Line<Out> {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  socket.on("error", () => {});
  socket.on("close", () => resolve());
  const lines = createInterface({ input: socket });
  // A socket's errors are told here again.
  lines.on("error", () => {});
  lines.on("line", (line) => {
    // What was under way to an end that hung up is not heard.
    if (!socket.destroyed) onMessage(JSON.parse(line) as In);
  });
  return {
    send: (message) => void (socket.writable && socket.write(`${JSON.stringify(message)}\n`)),
    close: () => void socket.destroy(),
    closed,
  };
}
