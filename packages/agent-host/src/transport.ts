import type { Duplex } from "node:stream";
import type { CallOptions, Sandbox } from "@slipway/sandbox";

/**
 * The way from a runner to this host, open until it is disposed of: the run channel and the models. What comes in is
 * untrusted. docs/run-channel.md says what another way, over TLS or by polling, has to keep to.
 */
export interface RunTransport extends AsyncDisposable {
  /** Variables by which the runner finds the host. */
  readonly environment: Readonly<Record<string, string>>;
  /** What the runner and its agents dial, until the signal or the transport's end. Whoever gets a connection ends it. */
  connections(options?: CallOptions): AsyncIterable<Duplex>;
}

/** By the sandbox's channel: a unix socket inside. */
export async function openTransport(sandbox: Pick<Sandbox, "openChannel">): Promise<RunTransport> {
  const channel = await sandbox.openChannel();
  return {
    environment: { SLIPWAY_RUN_SOCKET: channel.inside },
    connections: (options) => channel.connections(options),
    [Symbol.asyncDispose]: () => channel[Symbol.asyncDispose](),
  };
}
