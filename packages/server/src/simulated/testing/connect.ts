import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { type BuildId, SlipwayError } from "@slipway/contract";
import type { Work, WorkItem, WorkingBuild } from "@slipway/engine";
import type { AttemptName } from "../fate.ts";
import type { Host } from "../host.ts";
import { type CoordinatorMessage, type Line, openLine, type WorldMessage } from "./channel.ts";

export interface ConnectParts {
  readonly host: Host;
  readonly clock: { now(): number };
}

const reconnectMs = 100;

/** The work of a simulated world in another process. Reconnects by itself. */
export async function connectSimulation(
  socketPath: string,
  { host, clock }: ConnectParts,
): Promise<Work & AsyncDisposable> {
  const orders = new Map<number, PromiseWithResolvers<void>>();
  let heard = new Map<string, number>();
  let line: Line<CoordinatorMessage> | undefined;
  let isClosed = false;
  let last = 0;

  const hear = (alive: readonly AttemptName[], into: Map<string, number>) => {
    for (const { build, task, number } of alive) into.set(nameOf(build, task, number), clock.now());
    heard = into;
  };
  const open = async () => {
    const socket = connect(socketPath);
    await once(socket, "connect");
    let taking = Promise.resolve();
    const opened = openLine<WorldMessage, CoordinatorMessage>(socket, (message) => {
      switch (message.type) {
        case "notice":
          // In order. A notice that cannot be taken now is repeated over the next connection.
          taking = taking
            .then(async () =>
              opened.send({ type: "taken", number: message.number, taken: await host.take(message.notice) }),
            )
            .catch(() => opened.close());
          return;
        case "beat":
          return hear(message.alive, new Map());
        case "done":
          hear(message.alive, heard);
          orders.get(message.order)?.resolve();
          orders.delete(message.order);
      }
    });
    line = opened;
    void opened.closed.then(() => lose());
  };
  const lose = async () => {
    line = undefined;
    for (const { reject } of orders.values()) reject(unreachable());
    orders.clear();
    while (!isClosed && line === undefined) {
      await delay(reconnectMs);
      if (!isClosed) await open().catch(() => {});
    }
  };
  const order = async (method: "carryOut" | "reattach", build: WorkingBuild, items: readonly WorkItem[]) => {
    if (line === undefined) throw unreachable();
    const answer = Promise.withResolvers<void>();
    orders.set(++last, answer);
    const { id, account, project, mode, request } = build;
    line.send({ type: "order", order: last, method, build: { id, account, project, mode, request }, items });
    await answer.promise;
  };

  await open();
  return {
    carryOut: (build, asked) => order("carryOut", build, asked),
    reattach: (build, all) => order("reattach", build, all),
    heardAtMs: (build, task, attempt) => heard.get(nameOf(build, task, attempt)),
    async [Symbol.asyncDispose]() {
      isClosed = true;
      const closing = line;
      closing?.close();
      await closing?.closed;
    },
  };
}

function nameOf(build: BuildId, task: string, number: number): string {
  return `${build} ${task} ${number}`;
}

function unreachable(): SlipwayError {
  return new SlipwayError("provider_unavailable", "the simulated world does not answer");
}
