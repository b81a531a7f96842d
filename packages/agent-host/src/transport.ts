import type { Duplex } from "node:stream";
import type { CallOptions, Sandbox } from "@slipway/sandbox";

/**
 * The connections from a runner to this host, for the run channel and the models. Everything that comes in is untrusted.
 * docs/run-channel.md has the rules for another transport, over TLS or by polling.
 */
export interface RunTransport extends AsyncDisposable {
  /** Variables that tell the runner where to dial. */
  readonly environment: Readonly<Record<string, string>>;
  /** Connections of the runner and its agents, until the signal or the end of the transport. The caller ends each one. */
  connections(options?: CallOptions): AsyncIterable<Duplex>;
}

/** Uses the sandbox's channel: a unix socket inside. */
export async function openTransport(sandbox: Pick<Sandbox, "openChannel">): Promise<RunTransport> {
  const channel = await sandbox.openChannel();
  return {
    environment: { SLIPWAY_RUN_SOCKET: channel.inside },
    connections: (options) => channel.connections(options),
    [Symbol.asyncDispose]: () => channel[Symbol.asyncDispose](),
  };
}
