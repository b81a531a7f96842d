export {
  type CoordinatorReport,
  type CoordinatorTask,
  coordinate,
  type OtherCoordinator,
  spawnCoordinator,
} from "./coordinator.ts";
export { describeProvider } from "./suite.ts";
export type { ConformanceSubject, ConformanceTarget } from "./target.ts";
export { conformanceTools } from "./tools.ts";
