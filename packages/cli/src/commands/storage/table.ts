import type { Command, OptionSpec } from "../../input/command.ts";
import { idArgument, placeArgument } from "../options.ts";

const versionOption: OptionSpec = { value: "version", help: "Version to use", default: "the newest" };
const versions = (name: "list" | "remove" | "put" | "get") => async () => ({
  run: (await import("./versions.ts"))[name],
});

export const storageCommands: readonly Command[] = [
  {
    name: "storage sync",
    aliases: ["storage commit"],
    summary: "Keep the files that a sandbox has of the storage as a new version",
    arguments: [idArgument],
    options: {
      place: { value: "place", help: "Keep a directory at this place instead" },
      directory: { value: "path", help: "Directory to keep at --place", default: "the workdir" },
    },
    notes: ["Only changed files travel. A version is whole or is none, whenever the sync is killed."],
    examples: ["storage sync web", "storage sync web --place backups --directory /workspace/data"],
    load: () => import("./sync.ts"),
  },
  {
    name: "storage versions",
    summary: "List the versions at a place",
    arguments: [placeArgument],
    load: versions("list"),
  },
  {
    name: "storage restore",
    summary: "Make a sandbox's files equal to a version",
    arguments: [idArgument],
    options: {
      version: versionOption,
      directory: { value: "path", help: "Which directory, if several came from the storage" },
    },
    notes: ["Replaces what differs and removes what is more. To keep that, sync first."],
    load: async () => ({ run: (await import("./sync.ts")).restore }),
  },
  {
    name: "storage put",
    summary: "Keep a local directory as a new version",
    arguments: [{ name: "directory", help: "Local directory" }, placeArgument],
    examples: ["storage put ./skills shared"],
    load: versions("put"),
  },
  {
    name: "storage get",
    summary: "Write a version to a local directory",
    arguments: [placeArgument, { name: "directory", help: "Local directory" }],
    options: { version: versionOption },
    load: versions("get"),
  },
  {
    name: "storage rm",
    summary: "Delete a version",
    arguments: [placeArgument, { name: "version", help: "Version, as `storage versions` prints it" }],
    load: versions("remove"),
  },
];
