export type { Accounting, Prices, Usage } from "./accounting.ts";
export type { MovableClock } from "./clock.ts";
export type { Faults, Refusal } from "./faults.ts";
export { type ModalStandIn, type ModalStandInOptions, startModalStandIn } from "./stand-in.ts";
