export {
  type CoordinatorReport,
  type CoordinatorTask,
  coordinate,
  type OtherCoordinator,
  spawnCoordinator,
} from "./coordinator.ts";
export { describeProvider } from "./suite.ts";
export { type ConformanceClock, type ConformanceSubject, type ConformanceTarget, realClock } from "./target.ts";
export { conformanceTools } from "./tools.ts";
