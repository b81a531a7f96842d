export { type Database, type DatabaseAddress, type DatabaseKind, openDatabase } from "./database/open.ts";
export { createGatewayLedger } from "./gateway-ledger.ts";
export { createRunLog } from "./run-log.ts";
export type { Clock } from "./schema/queries.ts";
export { openStore } from "./store.ts";
