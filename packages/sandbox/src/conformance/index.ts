export {
  type CoordinatorReport,
  type CoordinatorTask,
  coordinate,
  type OtherCoordinator,
  perform,
  spawnCoordinator,
} from "./coordinator.ts";
export { scriptedShell } from "./programs.ts";
export { describeProvider } from "./suite.ts";
export { type ConformanceClock, type ConformanceSubject, type ConformanceTarget, realClock } from "./target.ts";
export { conformanceTools } from "./tools.ts";
