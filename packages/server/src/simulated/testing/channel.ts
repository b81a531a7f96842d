import type { Socket } from "node:net";
import { createInterface } from "node:readline";
import type { WorkItem, WorkingBuild } from "@slipway/engine";
import type { AttemptName } from "../fate.ts";
import type { Notice, Taken } from "../host.ts";

/** Messages of the simulated world to a coordinator. */
export type WorldMessage =
  /** Numbered, and repeated over new connections until it is taken. */
  | { readonly type: "notice"; readonly number: number; readonly notice: Notice }
  | { readonly type: "done"; readonly order: number; readonly alive: readonly AttemptName[] }
  /** A sign of life of all sandboxes. */
  | { readonly type: "beat"; readonly alive: readonly AttemptName[] };

/** Messages of a coordinator to the simulated world. */
export type CoordinatorMessage =
  | { readonly type: "taken"; readonly number: number; readonly taken: Taken }
  | {
      readonly type: "order";
      readonly order: number;
      readonly method: "carryOut" | "reattach";
      readonly build: WorkingBuild;
      readonly items: readonly WorkItem[];
    };

/** JSON lines. Both ends are programs of one test, so messages are trusted. */
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
  // The interface repeats the socket's errors.
  lines.on("error", () => {});
  lines.on("line", (line) => {
    // Ignore what arrives after this end hung up.
    if (!socket.destroyed) onMessage(JSON.parse(line) as In);
  });
  return {
    send: (message) => void (socket.writable && socket.write(`${JSON.stringify(message)}\n`)),
    close: () => void socket.destroy(),
    closed,
  };
}
