import { settingsError } from "@slipway/contract";
import { checkHealth, type RestateAddress } from "./restate-api.ts";

/** A Restate to drive builds with. */
export interface Restate extends RestateAddress {
  /** The public key of what it signs its requests with; undefined: it does not sign them. */
  readonly identityKey: string | undefined;
  /** Calls each time that it has come back, maybe without its data. */
  onRestart(listener: () => void): Disposable;
}

export interface RestateSettings {
  /** RESTATE_URL: of the ingress. */
  readonly url: string;
  /** RESTATE_ADMIN_URL: port 9070 of the same host when left out. */
  readonly adminUrl?: string | undefined;
  /** SLIPWAY_RESTATE_KEY */
  readonly identityKey?: string | undefined;
}

const healthMs = 15_000;

/** A Restate that others run. Fails with `invalid_settings`, or with `loop_unavailable` when nothing answers there. */
export async function connectRestate({ url, adminUrl, identityKey }: RestateSettings): Promise<Restate> {
  const ingress = parseUrl(url);
  const admin = adminUrl === undefined ? atPort(ingress, "9070") : parseUrl(adminUrl);
  const mistakes = [
    ...(ingress === undefined ? ["RESTATE_URL: takes an address like http://host:8080"] : []),
    ...(admin === undefined && adminUrl !== undefined
      ? ["RESTATE_ADMIN_URL: takes an address like http://host:9070"]
      : []),
    ...(identityKey !== undefined && !/^publickeyv1_[1-9A-HJ-NP-Za-km-z]{32,44}$/.test(identityKey)
      ? ["SLIPWAY_RESTATE_KEY: takes what Restate logs as its public key, publickeyv1_..."]
      : []),
  ];
  if (ingress === undefined || admin === undefined || mistakes.length > 0) throw settingsError(mistakes);
  const address = { ingressUrl: ingress.href, adminUrl: admin.href };
  await checkHealth(address, healthMs);
  return { ...address, identityKey, onRestart: () => ({ [Symbol.dispose]: () => undefined }) };
}

function parseUrl(text: string): URL | undefined {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) ? url : undefined;
}

function atPort(url: URL | undefined, port: string): URL | undefined {
  return url && Object.assign(new URL(url), { port });
}
