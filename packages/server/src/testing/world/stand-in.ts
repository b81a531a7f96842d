import { readFileSync } from "node:fs";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { type ModalStandIn, type Prices, startModalStandIn } from "@slipway/modal-stand-in";
import { expect, vi } from "vitest";

export interface StandInOptions {
  readonly prices?: Prices;
  /** False: its sandboxes are records only. */
  readonly processes?: boolean;
}

export interface StandInPart {
  readonly standIn: ModalStandIn;
  /** Settings of whoever shall use it. */
  readonly modalEnvironment: Readonly<Record<string, string>>;
}

/** A stand-in for Modal in this process, which from then on trusts its tunnels. Nothing may run there at its end. */
export async function openStandIn(
  options: StandInOptions,
  _: object,
  held: AsyncDisposableStack,
): Promise<StandInPart> {
  const standIn = held.use(await startModalStandIn(options));
  held.defer(() => expectNothingAtModal(standIn));
  const authorities = getCACertificates();
  setDefaultCACertificates([...authorities, readFileSync(standIn.caFile, "utf8")]);
  held.defer(() => setDefaultCACertificates(authorities));
  return {
    standIn,
    modalEnvironment: {
      ...standIn.environment,
      SANDBOX_PROVIDER: "modal",
      MODAL_CONFIG_PATH: "/dev/null",
      SLIPWAY_MODAL_TUNNEL_CA: standIn.caFile,
    },
  };
}

/** What is ended is gone soon, be it because somebody has come back to look. */
export async function expectNothingAtModal(standIn: ModalStandIn): Promise<void> {
  await vi.waitFor(() => expect(standIn.running()).toEqual([]), { timeout: 60_000, interval: 100 });
}
