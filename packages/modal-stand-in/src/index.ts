export type { Accounting, Prices, Usage } from "./accounting.ts";
export type { MovableClock } from "./clock.ts";
export type { Refusal } from "./fault-plan.ts";
export type { Faults } from "./faults.ts";
export { type ModalStandIn, type ModalStandInOptions, startModalStandIn } from "./stand-in.ts";
