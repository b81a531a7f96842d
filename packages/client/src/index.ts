export { type BuildsClient, type Client, createClient, type ServerAddress } from "./client.ts";
