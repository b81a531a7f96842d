import process from "node:process";
import { coordinate } from "../../../conformance/coordinator.ts";
import { openByEnvironment } from "./testing.ts";

/** A second coordinator on the state directory that is its argument; tests kill it. */
await coordinate(await openByEnvironment(process.env, process.argv[2] ?? ""));
