export { composeServer, type Server, type ServerOptions, type ServerSettings } from "./compose.ts";
export { type Coordinator, type CoordinatorParts, openCoordinator } from "./coordinator.ts";
export { startRestate } from "./durable/keep-restate.ts";
export { connectRestate } from "./durable/restate.ts";
