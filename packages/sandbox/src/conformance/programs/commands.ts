import type { SimulatedProcess } from "../../providers/simulated/program.ts";
import { append, forever, type Program } from "./program.ts";

/** One block of the program `flood`: lines of seven digits, so that a lost or doubled byte shows. */
export const floodBlockBytes = 1024 * 1024;
const floodBlockLines = floodBlockBytes / 8;
const firstFloodLine = 1_000_000;

export function floodBlock(block: number): Uint8Array {
  const first = firstFloodLine + block * floodBlockLines;
  let text = "";
  for (let line = first; line < first + floodBlockLines; line++) text += `${line}\n`;
  return Buffer.from(text, "latin1");
}

export const commands = {
  exit: {
    shell: 'exit "$1"',
    scripted: async ({ argv }) => Number(argv[4]),
  },
  speak: {
    shell: 'printf "%s" "$1"; printf "%s" "$2" >&2',
    scripted: async ({ argv, stdout, stderr }) => {
      await stdout.write(argv[4] ?? "");
      await stderr.write(argv[5] ?? "");
      return 0;
    },
  },
  rawBytes: {
    shell: "printf 'a\\377\\376b\\000c'; sleep 0.1; printf 'after'",
    scripted: async ({ stdout, clock }) => {
      await stdout.write(Uint8Array.of(0x61, 0xff, 0xfe, 0x62, 0, 0x63));
      await clock.sleep(100);
      await stdout.write("after");
      return 0;
    },
  },
  quiet: {
    shell: 'sleep "$1"; printf done',
    scripted: async ({ argv, clock, stdout }) => {
      await clock.sleep(Number(argv[4]) * 1000);
      await stdout.write("done");
      return 0;
    },
  },
  echoInput: {
    shell: "exec cat",
    scripted: async ({ stdin, stdout }) => {
      for await (const data of stdin) await stdout.write(data);
      return 0;
    },
  },
  argumentLength: {
    shell: 'printf "%s" "$1" | wc -c',
    scripted: async ({ argv, stdout }) => {
      await stdout.write(`${argv[4]?.length}\n`);
      return 0;
    },
  },
  variable: {
    shell: 'printenv "$1"',
    scripted: async ({ argv, env, stdout }) => {
      const value = env[argv[4] ?? ""];
      if (value === undefined) return 1;
      await stdout.write(`${value}\n`);
      return 0;
    },
  },
  workingDirectory: {
    shell: "pwd",
    scripted: async ({ cwd, stdout }) => {
      await stdout.write(`${cwd}\n`);
      return 0;
    },
  },
  userId: {
    shell: "id -u",
    scripted: async ({ user, stdout }) => {
      await stdout.write(user === "root" ? "0\n" : "1000\n");
      return 0;
    },
  },
  /** Lines at intervals, then exit code 7. */
  count: {
    shell: 'i=0; while [ $i -lt "$1" ]; do i=$((i+1)); echo "line $i"; sleep "$2"; done; exit 7',
    scripted: async ({ argv, stdout, clock }) => {
      for (let line = 1; line <= Number(argv[4]); line++) {
        await stdout.write(`line ${line}\n`);
        await clock.sleep(Number(argv[5]) * 1000);
      }
      return 7;
    },
  },
  /** As many blocks as asked; after each, its number goes into the file. */
  flood: {
    shell: `i=0; while [ $i -lt "$1" ]; do f=$((${firstFloodLine}+i*${floodBlockLines})); seq $f $((f+${floodBlockLines - 1})); i=$((i+1)); echo $i > "$2"; done`,
    scripted: async ({ argv, stdout, files }) => {
      for (let block = 0; block < Number(argv[4]); block++) {
        const data = floodBlock(block);
        for (let at = 0; at < data.length; at += 65536) await stdout.write(data.subarray(at, at + 65536));
        await files.write(argv[5] ?? "", `${block + 1}\n`);
      }
      return 0;
    },
  },
  /** The same bytes over and over: as many MiB as asked. */
  repeat: {
    shell: 'head -c "$1" /dev/zero',
    scripted: async ({ argv, stdout }) => {
      const block = new Uint8Array(65536);
      for (let rest = Number(argv[4]); rest > 0; rest -= block.length) await stdout.write(block.subarray(0, rest));
      return 0;
    },
  },
  ignoreTerm: {
    shell: "trap '' TERM; echo ready; while :; do sleep 0.05; done",
    scripted: async (process) => {
      process.trap("SIGTERM", () => undefined);
      await process.stdout.write("ready\n");
      return await forever(process);
    },
  },
  takeSignal: {
    shell: "trap 'printf taken; exit 5' USR1; echo ready; while :; do sleep 0.02; done",
    scripted: async (process) => {
      const taken = new Promise<void>((resolve) => process.trap("SIGUSR1", resolve));
      await process.stdout.write("ready\n");
      await taken;
      await process.stdout.write("taken");
      return 5;
    },
  },
  /** A sign of life in a file, twenty times a second. */
  beat: {
    shell: 'while :; do echo x >> "$1"; sleep 0.05; done',
    scripted: async (process) => await beat(process, process.argv[4] ?? ""),
  },
  /** A daemon that left its parent, its session and its terminal, and ignores polite signals; the command goes on beside it. */
  daemon: {
    shell: `setsid sh -c '(setsid sh -c "trap \\"\\" TERM HUP INT; while :; do echo x >> $0; sleep 0.05; done" "$0" &)' "$1" </dev/null >/dev/null 2>&1; echo ready; sleep 60`,
    scripted: async (process) => {
      process.fork(async (child) => {
        for (const name of ["SIGTERM", "SIGHUP", "SIGINT"] as const) child.trap(name, () => undefined);
        return await beat(child, process.argv[4] ?? "");
      });
      await process.stdout.write("ready\n");
      await process.clock.sleep(60_000);
      return 0;
    },
  },
  /** Ends at once while a child still holds its output. */
  leaveChild: {
    shell: "sleep 30 & echo left",
    scripted: async (process) => {
      process.fork(async (child) => {
        await child.clock.sleep(30_000);
        return 0;
      });
      await process.stdout.write("left\n");
      return 0;
    },
  },
  terminal: {
    shell: 'test -t 0 && stty size; trap "stty size; exit 0" WINCH; echo ready; while :; do sleep 0.02; done',
    scripted: null,
  },
} as const satisfies Record<string, Program>;

async function beat({ files, clock }: SimulatedProcess, path: string): Promise<never> {
  for (;;) {
    await append(files, path, "x\n");
    await clock.sleep(50);
  }
}
