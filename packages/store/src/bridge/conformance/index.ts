export type { BridgeSubject } from "./subject.ts";
export { describeBridge } from "./suite.ts";
