export { createScaledClock } from "./clock.ts";
export { connectSimulation } from "./connect.ts";
export { type SimulationSettings, usualWorld } from "./fate.ts";
export { createHost, type Host } from "./host.ts";
export { serveSimulation } from "./serve.ts";
export { createSimulation, type Simulation } from "./simulation.ts";
export { createWorldRecord } from "./witness.ts";
