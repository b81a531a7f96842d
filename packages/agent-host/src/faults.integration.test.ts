import { allFaults, testFaults, testLoops } from "./testing/faults.ts";

/** The full matrix is in faults.long.ts; here agents other than the builtin one meet the faults in which they differ. */
testFaults([
  ["builtin", allFaults],
  // Takes a stream that was cut off for a success.
  ["claude-code", ["cut", "hangStream"]],
  ["acp:codex", ["cut", "invalidJson"]],
  // Would try again for minutes.
  ["acp:opencode", ["hang"]],
  // Takes any end of an answer for a success.
  ["acp:gemini", ["cut", "refusal"]],
]);
testLoops(["builtin", "claude-code"]);
