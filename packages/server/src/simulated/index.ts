export { createScaledClock } from "./clock.ts";
export { type SimulationSettings, usualWorld } from "./fate.ts";
export { createHost, type Host } from "./host.ts";
export { createSimulation, type Simulation } from "./simulation.ts";
