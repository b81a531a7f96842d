import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { pipeline } from "node:stream/promises";
import type { Sandbox } from "@slipway/sandbox";
import { parseInteger } from "../../../input/arguments.ts";
import type { Context } from "../../../input/command.ts";
import { describeFailure } from "../../../input/failure.ts";
import { portRange } from "../../../input/request.ts";
import { sandboxOf } from "../../../input/resolve.ts";

/** Runs until Ctrl-C, which is a success. */
export async function forward(context: Context): Promise<number> {
  const port = parseInteger(context.args.argument("port"), "<port>", portRange);
  const listen = context.args.integer("listen", { min: 0, max: 65_535 }) ?? port;
  const sandbox = await sandboxOf(context);
  const ended = new AbortController();
  using _interrupts = context.interrupts.take(() => ended.abort());
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    carry(context, sandbox, port, socket, ended.signal).finally(() => sockets.delete(socket));
  });
  const address = await listenOn(server, listen);
  try {
    await context.result(
      { sandbox: sandbox.id, port, listen: { host: address.address, port: address.port } },
      `http://${address.address}:${address.port} forwards to port ${port} of ${sandbox.id}; Ctrl-C stops it\n`,
    );
    if (!ended.signal.aborted) await once(ended.signal, "abort");
    return 0;
  } finally {
    server.close();
    for (const socket of sockets) socket.destroy();
  }
}

/** Prints the preview URL of a port. */
export async function url(context: Context): Promise<void> {
  const text = context.args.optional("port");
  const port = text === undefined ? (await context.settings()).previewPort : parseInteger(text, "<port>", portRange);
  const sandbox = await sandboxOf(context);
  const address = await sandbox.previewUrl(port, { signal: context.interrupts.signal });
  await context.result({ sandbox: sandbox.id, port, url: address }, `${address}\n`);
}

async function listenOn(server: Server, port: number): Promise<AddressInfo> {
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return server.address() as AddressInfo;
}

async function carry(
  context: Context,
  sandbox: Sandbox,
  port: number,
  socket: Socket,
  signal: AbortSignal,
): Promise<void> {
  // Each direction ends on its own; a reset by either side is a normal end.
  socket.on("error", () => {});
  try {
    const inside = await sandbox.connect(port, { signal });
    await Promise.allSettled([pipeline(socket, inside, { signal }), pipeline(inside, socket, { signal })]);
  } catch (error) {
    socket.destroy();
    if (signal.aborted) return;
    const { message, action } = await describeFailure(error);
    await context.note(`a connection failed: ${message} ${action}`).catch(() => {});
  }
}
