import { coordinate } from "@slipway/sandbox/conformance";
import { openOn } from "./provider.ts";

/** A second coordinator on the state directory and with the settings that are its arguments; tests kill it. */
const [, , stateDir = "", environment = "{}"] = process.argv;
await coordinate(await openOn(stateDir, JSON.parse(environment) as Record<string, string>));
