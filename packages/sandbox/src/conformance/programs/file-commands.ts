import { createHash } from "node:crypto";
import { readBytes } from "../../run.ts";
import { append, type Program } from "./program.ts";

export const fileCommands = {
  append: {
    shell: 'printf "%s" "$2" >> "$1"',
    scripted: async ({ argv, files }) => {
      await append(files, argv[4] ?? "", argv[5] ?? "");
      return 0;
    },
  },
  readFile: {
    shell: 'cat "$1"',
    scripted: async ({ argv, files, stdout }) => {
      try {
        await stdout.write(await readBytes(files, argv[4] ?? ""));
        return 0;
      } catch {
        return 1;
      }
    },
  },
  hashFile: {
    shell: 'sha256sum < "$1" | cut -c1-64',
    scripted: async ({ argv, files, stdout }) => {
      const hash = createHash("sha256");
      for await (const chunk of files.read(argv[4] ?? "")) hash.update(chunk);
      await stdout.write(`${hash.digest("hex")}\n`);
      return 0;
    },
  },
  link: {
    shell: 'ln -s "$1" "$2"',
    scripted: async ({ argv, files }) => {
      const [, , , , target = "", path = ""] = argv;
      const at = path.lastIndexOf("/");
      await files.upload(path.slice(0, at), [{ type: "symlink", path: path.slice(at + 1), target }]);
      return 0;
    },
  },
  /** Makes a directory a symbolic link to elsewhere and back, without end. */
  flipDirectory: {
    shell: 'echo ready; while :; do mv "$1" "$1.kept"; ln -s "$2" "$1"; rm "$1"; mv "$1.kept" "$1"; done',
    scripted: async (process) => {
      const [, , , , path = "", target = ""] = process.argv;
      const at = path.lastIndexOf("/");
      const link = [{ type: "symlink", path: path.slice(at + 1), target }] as const;
      await process.stdout.write("ready\n");
      for (;;) {
        await process.files.move(path, `${path}.kept`);
        await process.files.upload(path.slice(0, at), link);
        await process.clock.sleep(1);
        await process.files.remove(path);
        await process.files.move(`${path}.kept`, path);
        await process.clock.sleep(1);
      }
    },
  },
  fifo: { shell: 'mkfifo "$1"', scripted: null },
} as const satisfies Record<string, Program>;
