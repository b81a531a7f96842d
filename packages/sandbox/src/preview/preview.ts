import type { Duplex } from "node:stream";
import type { SandboxId } from "@slipway/contract";
import { type Address, openAddress, type UsedPorts } from "./address.ts";

export interface PreviewOptions {
  /**
   * A new connection to a port inside a sandbox. Rejects with a SlipwayError: `connection_refused` when nothing listens,
   * `sandbox_not_running` or similar without a running sandbox.
   */
  readonly connect: (sandbox: SandboxId, port: number, options: { signal: AbortSignal }) => Promise<Duplex>;
  readonly usedPorts: UsedPorts;
}

export interface PreviewRequest {
  readonly sandbox: SandboxId;
  /** Inside the sandbox. */
  readonly port: number;
  /** Its earlier address. */
  readonly hostPort?: number;
  readonly token?: string;
}

export interface Preview extends AsyncDisposable {
  /** A listening address of a sandbox's port, the same while it is open. */
  open(request: PreviewRequest): Promise<Address>;
  /** Closes all addresses of the sandbox. */
  release(sandbox: SandboxId): Promise<void>;
}

/** Reverse proxies into sandboxes, with one loopback port for each of their ports. */
export function createPreview({ connect, usedPorts }: PreviewOptions): Preview {
  const addresses = new Map<string, Promise<Address>>();

  const open = ({ sandbox, port, hostPort, token }: PreviewRequest): Promise<Address> =>
    openAddress({ port, hostPort, token, usedPorts, connect: (signal) => connect(sandbox, port, { signal }) });
  const release = async (matches: (key: string) => boolean) => {
    const leaving = [...addresses].filter(([key]) => matches(key));
    for (const [key] of leaving) addresses.delete(key);
    await Promise.allSettled(leaving.map(async ([, address]) => (await address)[Symbol.asyncDispose]()));
  };
  return {
    open: async (request) => {
      const key = `${request.sandbox}:${request.port}`;
      const address = addresses.get(key) ?? open(request);
      addresses.set(key, address);
      try {
        return await address;
      } catch (error) {
        if (addresses.get(key) === address) addresses.delete(key);
        throw error;
      }
    },
    release: (sandbox) => release((key) => key.startsWith(`${sandbox}:`)),
    [Symbol.asyncDispose]: () => release(() => true),
  };
}
