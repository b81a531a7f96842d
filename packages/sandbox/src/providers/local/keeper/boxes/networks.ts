import { setImmediate } from "node:timers/promises";
import type { NetworkPolicy } from "@slipway/contract";
import type { EventLog } from "../../../../keeper/events/log.ts";
import type { Layout } from "../../layout.ts";
import type { CertificateAuthority } from "../egress/authority.ts";
import { createEgress, type Egress } from "../egress/egress.ts";
import type { Destination } from "../egress/rules.ts";
import type { Box } from "./boxes.ts";

/** The egress of each sandbox. It exists even when nothing is allowed, to record refusals. */
export interface Networks {
  open(box: Box): Promise<void>;
  /** Applies the policy of the sandbox's record. */
  setPolicy(box: Box): Promise<void>;
  close(box: Box): Promise<void>;
}

export interface NetworkParts {
  readonly layout: Layout;
  readonly events: EventLog;
  readonly authority: CertificateAuthority;
  /** The package registries of this machine, with a port where it is unusual. */
  readonly registries: readonly string[];
  onError(box: Box, error: unknown): void;
}

const usualPorts = [80, 443];

export function createNetworks({ layout, events, authority, registries, onError }: NetworkParts): Networks {
  const open = new Map<Box, Promise<Egress>>();
  const destinations = registries.flatMap(registryDestinations);
  const listen = (box: Box) =>
    createEgress({
      socketPath: layout.box(box.id).egressSocket,
      // Only the sandboxes' uid reaches its directory, and as root that is another user.
      socketMode: 0o666,
      policy: box.record.network,
      registries: destinations,
      certificateAuthority: authority,
      onRefused: (refusal) => events.append({ type: "egress.refused", sandbox: box.id, ...refusal }),
    });
  return {
    async open(box) {
      // An egress that refuses everything does not delay the start.
      const closed = isClosed(box.record.network);
      const egress = closed ? setImmediate().then(() => listen(box)) : listen(box);
      open.set(box, egress);
      if (closed) egress.catch((error) => onError(box, error));
      else await egress;
    },
    async setPolicy(box) {
      (await open.get(box))?.setPolicy(box.record.network);
    },
    async close(box) {
      const egress = open.get(box);
      open.delete(box);
      await egress?.then((opened) => opened.close()).catch(() => undefined);
    },
  };
}

function registryDestinations(registry: string): Destination[] {
  const { hostname: host, port } = new URL(`http://${registry}`);
  const ports = port === "" ? usualPorts : [Number(port)];
  return ports.map((port) => ({ host, port, allowPrivate: true }));
}

function isClosed({ domains, cidrs, registries, secrets, forwards }: NetworkPolicy): boolean {
  return !registries && domains.length + cidrs.length + secrets.length + forwards.length === 0;
}
