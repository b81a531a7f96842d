import { allFaults, testFaults, testLoops } from "./testing/faults.ts";
import { drivers } from "./testing/site.ts";

testFaults([
  ...drivers.map((agent) => [agent, allFaults] as const),
  ["acp:opencode", ["hang", "hangStream", "cut"]],
  ["acp:gemini", ["cut", "refusal"]],
]);
testLoops(drivers);
