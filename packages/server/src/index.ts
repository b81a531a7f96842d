export { composeServer, type Server, type ServerOptions, type ServerSettings } from "./compose.ts";
