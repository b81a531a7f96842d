export type { Endpoint, ScriptedAddress } from "./endpoints.ts";
export type { GatewayLogLine } from "./exchange.ts";
export {
  createGateway,
  type Gateway,
  type GatewayOptions,
  type Grant,
  type OpenCalls,
  type OpenRun,
  type RunGrant,
} from "./gateway.ts";
export type { ProviderHealth, ResponseEnd } from "./health.ts";
export { createMemoryLedger, type OpenLedger, openLedger } from "./journal/ledger.ts";
export { openRunLog } from "./journal/run-log.ts";
export type { ListenAddress, Listener } from "./listen.ts";
export type { Balance, Clock, Ledger, RunLog, Settlement } from "./ports.ts";
export { type SettledResponse, wasCutOff } from "./responses.ts";
export { resolveRoutes } from "./routes.ts";
export { type CassetteSettings, type GatewaySettings, readGatewaySettings } from "./settings.ts";
