export { simulatedCapabilities } from "./capabilities.ts";
export { type Clock, createManualClock, type ManualClock, sleep } from "./clock.ts";
export type { Faults, Operation } from "./faults.ts";
export { createCountingIds, type Ids } from "./ids.ts";
export type { SimulatedOutput, SimulatedProcess, SimulatedProgram } from "./program.ts";
export { createSimulatedProvider, type SimulatedProvider, type SimulatedSettings } from "./provider.ts";
