import childProcess, { ChildProcess } from "node:child_process";
import { syncBuiltinESMExports } from "node:module";
import { afterEach } from "vitest";

/** Unit tests start no process. One that does fails, also when the code under test catches the error. */
const started: string[] = [];

function refuse(program: string): never {
  started.push(program);
  throw new Error(`A unit test started ${program}. Name a file that needs processes *.integration.test.ts.`);
}

// The parent of `spawn`, `exec`, `execFile` and `fork`.
const spawning = ChildProcess.prototype as unknown as { spawn(options: { file: string }): void };
spawning.spawn = ({ file }) => refuse(file);
for (const name of ["spawnSync", "execSync", "execFileSync"] as const) {
  Object.defineProperty(childProcess, name, { value: (program: string) => refuse(program) });
}
syncBuiltinESMExports();

afterEach(() => {
  const [program] = started.splice(0);
  if (program !== undefined) throw new Error(`This unit test started ${program}.`);
});
