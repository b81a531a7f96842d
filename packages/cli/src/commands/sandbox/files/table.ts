import type { Command } from "../../../input/command.ts";
import { idArgument, snapshotArgument } from "../../options.ts";

const files = "Files";
const snapshots = "Snapshots";
const expires = { value: "duration|never", help: "Deleted after this long (never)" };

export const fileCommands: readonly Command[] = [
  {
    name: "sandbox cp",
    group: files,
    summary: "Copy a file or a tree into or out of a sandbox",
    arguments: [
      { name: "from", help: "a path here, <id>:<path> inside, or - for standard input" },
      { name: "to", help: "a path here, <id>:<path> inside, or - for standard output" },
    ],
    options: {},
    notes: [
      "A directory that exists takes the copy below its own name; a source that ends in /. gives its content alone.",
      "What comes out is untrusted: nothing is written outside the destination or through a link, and links that lead outside are left out.",
    ],
    examples: ["sandbox cp src web:/workspace", "sandbox cp web:/workspace/dist .", "sandbox cp web:log.txt - | tail"],
    load: () => import("./cp.ts"),
  },
  {
    name: "sandbox ls",
    group: files,
    summary: "List files",
    arguments: [idArgument, { name: "path", help: "a directory or file (the workdir)", optional: true }],
    options: { glob: { value: "pattern", help: "Entries below that match, for instance **/*.ts" } },
    load: () => import("./ls.ts"),
  },
  {
    name: "sandbox snapshot",
    group: snapshots,
    summary: "Keep a sandbox's files as they are now and print the snapshot's id",
    arguments: [idArgument],
    options: { name: { value: "name", help: "A name to use in place of the id" }, expires },
    load: async () => ({ run: (await import("../snapshots.ts")).take }),
  },
  {
    name: "sandbox snapshots",
    group: snapshots,
    summary: "List snapshots",
    arguments: [],
    options: {},
    load: async () => ({ run: (await import("../snapshots.ts")).list }),
  },
  {
    name: "sandbox snapshot-set",
    group: snapshots,
    summary: "Change a snapshot's name or expiry",
    arguments: [snapshotArgument],
    options: {
      name: { value: "name", help: "New name; an empty one removes it" },
      expires: { value: "duration|never", help: "Deleted this long from now" },
    },
    load: async () => ({ run: (await import("../snapshots.ts")).change }),
  },
  {
    name: "sandbox snapshot-rm",
    group: snapshots,
    summary: "Delete a snapshot",
    arguments: [snapshotArgument],
    options: {},
    load: async () => ({ run: (await import("../snapshots.ts")).remove }),
  },
];
