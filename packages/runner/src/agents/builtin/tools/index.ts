import { createOrUpdateFilesTool, readFilesTool } from "./files.ts";
import { listFilesTool, searchTool } from "./find.ts";
import { terminalTool } from "./terminal.ts";
import type { BuiltinTool, Workplace } from "./tool.ts";

export function workTools(workplace: Workplace): BuiltinTool[] {
  return [
    terminalTool(workplace),
    createOrUpdateFilesTool(workplace),
    readFilesTool(workplace),
    listFilesTool(workplace),
    searchTool(workplace),
  ];
}
