import { coordinate } from "../../conformance/coordinator.ts";
import { createLocalProvider } from "./index.ts";

/** A second coordinator on the state directory that is its argument; tests kill it. */
await coordinate(createLocalProvider({ stateDir: process.argv[2] ?? "", environment: process.env }));
