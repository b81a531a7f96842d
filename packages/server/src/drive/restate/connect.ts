import { checkHealth, type RestateAddress } from "./api.ts";

export interface RestateSettings {
  /** RESTATE_URL: of the ingress. */
  readonly url: string;
  /** RESTATE_ADMIN_URL: port 9070 of the same host, or admin.sock beside ingress.sock, when left out. */
  readonly adminUrl?: string | undefined;
  /** SLIPWAY_RESTATE_KEY: the public key of what it signs its requests with. Others are not taken. */
  readonly identityKey: string;
  /** SLIPWAY_SERVER_HOST: an address of this machine that Restate can reach; loopback when left out. */
  readonly host?: string | undefined;
}

const healthMs = 15_000;

/** Answers where a Restate that others run is. Fails with `loop_unavailable` when nothing answers there. */
export async function findRestate({ url, adminUrl }: RestateSettings): Promise<RestateAddress> {
  const ingress = new URL(url);
  const address = { ingressUrl: ingress.href, adminUrl: adminUrl ?? adminBeside(ingress).href };
  await checkHealth(address, healthMs);
  return address;
}

function adminBeside(ingress: URL): URL {
  return ingress.protocol === "unix:"
    ? new URL("admin.sock", ingress)
    : Object.assign(new URL(ingress), { port: "9070" });
}
