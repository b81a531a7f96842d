import { expect, test } from "vitest";
import { insteadText } from "./instead.ts";

test("a page of a main without a dev server says so, and names the repository, the branch and the gates", () => {
  const main = {
    reason: "main has no dev server",
    repository: "/state/repository.git",
    branch: "main",
    commit: "f00d",
  };
  const gates = [
    { name: "build", verdict: "passed" as const },
    { name: "tests", verdict: "failed" as const },
  ];
  expect(insteadText({ ...main, gates }).split("\n")).toEqual([
    "There is nothing to show: main has no dev server.",
    "Once a merge adds one, it is shown here.",
    "",
    "Available instead:",
    "  to clone:   /state/repository.git",
    "  branch:     main, at f00d",
    "  gates:      build passed, tests failed",
  ]);
  expect(insteadText({ ...main, gates: [] })).not.toContain("gates");
});
