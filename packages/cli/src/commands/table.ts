import type { Command } from "../command.ts";
import { agentCommands } from "./table-agents.ts";
import { buildCommands } from "./table-builds.ts";
import { fileCommands } from "./table-files.ts";
import { lifecycleCommands } from "./table-lifecycle.ts";
import { programCommands } from "./table-programs.ts";
import { providerCommands } from "./table-provider.ts";

/** Every command. Help, parsing and suggestions are made from this. */
export const commands: readonly Command[] = [
  ...buildCommands,
  ...agentCommands,
  ...lifecycleCommands,
  ...programCommands,
  ...fileCommands,
  ...providerCommands,
];
