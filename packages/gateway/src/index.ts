export type { ProviderHealth, ResponseEnd } from "./deliver/health.ts";
export { type SettledResponse, wasCutOff } from "./deliver/responses.ts";
export {
  createGateway,
  type Gateway,
  type GatewayOptions,
  type Grant,
  type OpenCalls,
  type OpenRun,
  type RunGrant,
} from "./gateway.ts";
export { createMemoryLedger, type OpenLedger, openLedger } from "./journal/ledger.ts";
export { openRunLog } from "./journal/run-log.ts";
export type { GatewayLogLine } from "./listen/exchange.ts";
export type { ListenAddress, Listener } from "./listen/listen.ts";
export type { Balance, Clock, Ledger, RunLog, Settlement } from "./ports/ports.ts";
export type { Endpoint, ScriptedAddress } from "./settings/endpoints.ts";
export { resolveRoutes } from "./settings/routes.ts";
export { type CassetteSettings, type GatewaySettings, readGatewaySettings } from "./settings/settings.ts";
