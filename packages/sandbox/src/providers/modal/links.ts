import { once } from "node:events";
import type { Duplex } from "node:stream";
import { connect, rootCertificates, type TLSSocket } from "node:tls";
import type { SandboxId } from "@slipway/contract";
import { abortable } from "../../abort.ts";
import { type Link, openLink } from "../../link/index.ts";
import type { Address, SandboxRecord } from "./record.ts";

/** This process's connections to sandboxes. One goes on over the starts of its sandbox. */
export interface Links extends AsyncDisposable {
  /** Opens it the first time. */
  get(record: Pick<SandboxRecord, "id" | "key">): Link;
  /** Its record has changed: it may be elsewhere. */
  changed(id: SandboxId): void;
  allChanged(): void;
  drop(id: SandboxId): void;
}

export interface LinkParts {
  /** The address of a sandbox now; null while it does not run. Fails when there is no such sandbox. */
  addressOf(id: SandboxId): Promise<Address | null>;
  /** PEM of an authority that has signed the tunnels' certificates, besides those that Node knows. */
  readonly tunnelCa: string | undefined;
}

interface Open {
  readonly link: Link;
  readonly waiting: Set<() => void>;
  connected: { readonly address: Address; readonly socket: TLSSocket } | null;
}

export function createLinks({ addressOf, tunnelCa }: LinkParts): Links {
  const opened = new Map<SandboxId, Open>();
  const ca = tunnelCa === undefined ? undefined : [...rootCertificates, tunnelCa];

  const untilChanged = (id: SandboxId, signal: AbortSignal) =>
    abortable<void>(signal, ({ resolve }) => {
      const { waiting } = opened.get(id) ?? { waiting: new Set<() => void>() };
      const wake = () => resolve();
      waiting.add(wake);
      return () => waiting.delete(wake);
    });
  const open = async (id: SandboxId, signal: AbortSignal): Promise<Duplex> => {
    for (;;) {
      const changed = untilChanged(id, signal);
      changed.catch(() => undefined);
      const address = await addressOf(id);
      if (address !== null) return await dial(id, address, signal);
      await changed;
    }
  };
  const dial = async (id: SandboxId, address: Address, signal: AbortSignal): Promise<Duplex> => {
    const { host, port } = address;
    const socket = connect({ host, port, servername: host, ...(ca !== undefined && { ca }) });
    const cut = () => socket.destroy();
    signal.addEventListener("abort", cut, { once: true });
    try {
      await once(socket, "secureConnect", { signal });
    } catch (error) {
      socket.destroy();
      throw error;
    } finally {
      signal.removeEventListener("abort", cut);
    }
    socket.setNoDelay(true);
    const here = opened.get(id);
    if (here !== undefined) here.connected = { address, socket };
    return socket;
  };
  const changed = async (id: SandboxId) => {
    const here = opened.get(id);
    if (here === undefined) return;
    for (const wake of here.waiting) wake();
    here.waiting.clear();
    if (here.connected === null) return;
    const address = await addressOf(id).catch(() => null);
    const { address: last, socket } = here.connected;
    // What it led to has ended: nobody would tell this end.
    if (address?.host !== last.host || address.port !== last.port) socket.destroy();
  };
  const drop = (id: SandboxId) => {
    const here = opened.get(id);
    opened.delete(id);
    void here?.link[Symbol.asyncDispose]();
  };
  return {
    get({ id, key }) {
      const known = opened.get(id);
      if (known !== undefined) return known.link;
      const link = openLink({ open: (signal) => open(id, signal), key: Buffer.from(key, "hex") });
      opened.set(id, { link, waiting: new Set(), connected: null });
      return link;
    },
    changed: (id) => void changed(id),
    allChanged() {
      for (const id of opened.keys()) void changed(id);
    },
    drop,
    async [Symbol.asyncDispose]() {
      const links = [...opened.values()].map(({ link }) => link);
      opened.clear();
      await Promise.all(links.map((link) => link[Symbol.asyncDispose]()));
    },
  };
}
