import type { CommandGroup } from "../input/command.ts";
import { agentCommands } from "./agent/table.ts";
import { buildCommands } from "./build/table.ts";
import { machineCommands, maintenanceCommands } from "./provider/table.ts";
import { networkCommands, programCommands } from "./sandbox/exec/table.ts";
import { fileCommands, snapshotCommands } from "./sandbox/files/table.ts";
import { lifecycleCommands } from "./sandbox/table-lifecycle.ts";
import { storageCommands } from "./storage/table.ts";

/** Every command, in the order of the help. Help, parsing and suggestions are made from this. */
export const groups: readonly CommandGroup[] = [
  { title: "Builds", commands: buildCommands },
  { title: "Agents", commands: agentCommands },
  { title: "Sandboxes", commands: lifecycleCommands },
  { title: "Programs", commands: programCommands },
  { title: "Ports and network", commands: networkCommands },
  { title: "Files", commands: fileCommands },
  { title: "Snapshots", commands: snapshotCommands },
  { title: "Storage", commands: storageCommands },
  { title: "Maintenance", commands: maintenanceCommands },
  { title: "Server and machine", commands: machineCommands },
];

export const commands = groups.flatMap((group) => group.commands);
