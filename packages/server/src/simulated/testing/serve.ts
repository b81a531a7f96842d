import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { runChannel } from "@slipway/contract";
import type { Host, Notice, Taken } from "../host.ts";
import { createSimulation, type Simulation, type SimulationParts } from "../simulation.ts";
import { type CoordinatorMessage, type Line, openLine, type WorldMessage } from "./channel.ts";

export interface ServedSimulation extends AsyncDisposable {
  readonly simulation: Simulation;
}

/**
 * A simulated world that outlives its coordinators, as sandboxes do. It keeps each notice until a coordinator has taken it,
 * and repeats it to the next one.
 */
export async function serveSimulation(
  socketPath: string,
  parts: Omit<SimulationParts, "host">,
): Promise<ServedSimulation> {
  const spool = createSpool();
  const simulation = createSimulation({ ...parts, host: spool });
  const lines = new Set<Line<WorldMessage>>();
  const server = createServer((socket: Socket) => {
    const line = openLine<CoordinatorMessage, WorldMessage>(socket, async (message) => {
      if (message.type === "taken") return spool.taken(message.number, message.taken);
      const { order, method, build, items } = message;
      await simulation[method](build, items);
      line.send({ type: "done", order, alive: simulation.alive(build.id) });
    });
    lines.add(line);
    spool.join(line);
    void line.closed.then(() => {
      lines.delete(line);
      spool.leave(line);
    });
  }).listen(socketPath);
  await once(server, "listening");

  let stopBeat = () => {};
  const beat = () => {
    const alive = simulation.alive();
    for (const line of lines) line.send({ type: "beat", alive });
    stopBeat = parts.clock.after(runChannel.heartbeatMs, beat);
  };
  beat();

  return {
    simulation,
    async [Symbol.asyncDispose]() {
      stopBeat();
      for (const line of lines) line.close();
      server.close();
      await once(server, "close");
    },
  };
}

interface Spool extends Host {
  join(line: Line<WorldMessage>): void;
  leave(line: Line<WorldMessage>): void;
  taken(number: number, taken: Taken): void;
}

/** Sends everything to one coordinator, in order; what that one has not taken goes to the next. */
function createSpool(): Spool {
  const waiting = new Map<number, { readonly notice: Notice; readonly resolve: (taken: Taken) => void }>();
  const joined = new Set<Line<WorldMessage>>();
  let listener: Line<WorldMessage> | undefined;
  let last = 0;
  const listen = (line: Line<WorldMessage> | undefined) => {
    listener = line;
    for (const [number, { notice }] of waiting) line?.send({ type: "notice", number, notice });
  };
  return {
    take(notice) {
      const number = ++last;
      const { promise, resolve } = Promise.withResolvers<Taken>();
      waiting.set(number, { notice, resolve });
      listener?.send({ type: "notice", number, notice });
      return promise;
    },
    taken(number, taken) {
      waiting.get(number)?.resolve(taken);
      waiting.delete(number);
    },
    join(line) {
      joined.add(line);
      if (listener === undefined) listen(line);
    },
    leave(line) {
      joined.delete(line);
      if (line === listener) listen([...joined][0]);
    },
  };
}
