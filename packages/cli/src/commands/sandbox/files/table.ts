import type { Command } from "../../../input/command.ts";
import { idArgument, snapshotArgument } from "../../options.ts";

const snapshots = (name: "take" | "list" | "change" | "remove") => async () => ({
  run: (await import("../snapshots.ts"))[name],
});

export const fileCommands: readonly Command[] = [
  {
    name: "sandbox cp",
    summary: "Copy a file or directory into or out of a sandbox",
    arguments: [
      { name: "from", help: "Local path, <id>:<path> in a sandbox, or - for standard input" },
      { name: "to", help: "Local path, <id>:<path> in a sandbox, or - for standard output" },
    ],
    notes: [
      "An existing directory receives the copy under its own name; a source that ends in /. copies only its contents.",
      "Output of a sandbox is untrusted: nothing is written outside the destination or through a link, and links that point outside are skipped.",
    ],
    examples: ["sandbox cp src web:/workspace", "sandbox cp web:/workspace/dist .", "sandbox cp web:log.txt - | tail"],
    load: () => import("./cp.ts"),
  },
  {
    name: "sandbox ls",
    summary: "List files in a sandbox",
    arguments: [idArgument, { name: "path", help: "Directory or file (default: the workdir)", optional: true }],
    options: { glob: { value: "pattern", help: "List all entries below that match, for example **/*.ts" } },
    load: () => import("./ls.ts"),
  },
];

export const snapshotCommands: readonly Command[] = [
  {
    name: "sandbox snapshot",
    summary: "Snapshot a sandbox's files and print the snapshot's ID",
    arguments: [idArgument],
    options: {
      name: { value: "name", help: "Name to use in place of the ID" },
      expires: { value: "duration|never", help: "Delete the snapshot after this long", default: "never" },
    },
    load: snapshots("take"),
  },
  { name: "sandbox snapshots", summary: "List snapshots", load: snapshots("list") },
  {
    name: "sandbox snapshot-set",
    summary: "Change a snapshot's name or expiry",
    arguments: [snapshotArgument],
    options: {
      name: { value: "name", help: "New name; an empty name removes it" },
      expires: { value: "duration|never", help: "Delete the snapshot this long from now" },
    },
    load: snapshots("change"),
  },
  {
    name: "sandbox snapshot-rm",
    summary: "Delete a snapshot",
    arguments: [snapshotArgument],
    load: snapshots("remove"),
  },
];
