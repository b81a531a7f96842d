import type { NewEvent } from "../ports/store.ts";
import type { MergeAction } from "./actions.ts";
import type { MergeQueue } from "./state.ts";

/** A decision, as those who follow the build read it. Where candidates stand in the line is nothing to tell. */
export function tellMerging(action: MergeAction, { candidates }: MergeQueue): readonly NewEvent[] {
  if (!("candidate" in action)) return [];
  const { candidate } = action;
  const task = candidates.find(({ id }) => id === candidate)?.task ?? "";
  switch (action.type) {
    case "start-run":
      return [{ type: "gate.started", data: { candidate, task, gate: action.gate, run: action.run } }];
    case "reject": {
      const { gate, broken, unchanged } = action;
      const type = gate === "main-test" ? "merge.test_failed" : "merge.rejected";
      const finding = action.findings[0]?.text.slice(0, 500) ?? "";
      return [{ type, data: { candidate, task, gate, broken, unchanged, finding } }];
    }
    case "return-conflict":
      return [{ type: "merge.conflict", data: { candidate, task, paths: action.paths.slice(0, 20) } }];
    case "set-aside":
      return [{ type: "merge.doubted", data: { candidate, task, gate: action.gate } }];
    default:
      return [];
  }
}
