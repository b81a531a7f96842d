import type { Command } from "../input/command.ts";
import { agentCommands } from "./agent/table.ts";
import { buildCommands } from "./build/table.ts";
import { providerCommands } from "./provider/table.ts";
import { programCommands } from "./sandbox/exec/table.ts";
import { fileCommands } from "./sandbox/files/table.ts";
import { lifecycleCommands } from "./sandbox/table-lifecycle.ts";

/** Every command. Help, parsing and suggestions are made from this. */
export const commands: readonly Command[] = [
  ...buildCommands,
  ...agentCommands,
  ...lifecycleCommands,
  ...programCommands,
  ...fileCommands,
  ...providerCommands,
];
