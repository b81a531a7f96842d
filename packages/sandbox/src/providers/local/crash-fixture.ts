import { createHash } from "node:crypto";
import { writeSync } from "node:fs";
import { newId } from "@slipway/contract";
import type { OwnedSandbox } from "../../provider.ts";
import { run } from "../../run.ts";
import { createLocalProvider } from "./index.ts";

/** What the workload was promised: a line is written only after the call had answered. */
export type Promised =
  | { readonly type: "created"; readonly sandbox: string }
  | {
      readonly type: "started";
      readonly sandbox: string;
      readonly exec: string;
      readonly bytes: number;
      readonly exitCode: number;
    }
  | { readonly type: "written"; readonly sandbox: string; readonly path: string; readonly sha256: string }
  | { readonly type: "snapshot"; readonly snapshot: string }
  | { readonly type: "destroyed"; readonly sandbox: string };

/** Works on the state directory that is its argument until it is killed, several sandboxes at a time. */
const provider = createLocalProvider({ stateDir: process.argv[2] ?? "", environment: process.env });
const promise = (promised: Promised) => writeSync(1, `${JSON.stringify(promised)}\n`);

await Promise.all([work(1), work(2), work(3)]);

async function work(seed: number): Promise<void> {
  for (let round = seed; ; round += 3) {
    const sandbox = await provider.create({ cpu: 1, memoryMb: 256, diskMb: 256 });
    promise({ type: "created", sandbox: sandbox.id });
    await startExecs(sandbox, round);
    await writeFiles(sandbox, round);
    const { id } = await sandbox.snapshot();
    promise({ type: "snapshot", snapshot: id });
    if (round % 4 === 0) {
      await sandbox.destroy();
      promise({ type: "destroyed", sandbox: sandbox.id });
    } else if (round % 4 === 1) {
      await sandbox.stop();
      promise({ type: "snapshot", snapshot: (await sandbox.snapshot()).id });
    }
  }
}

/** Their output comes over some hundred milliseconds, so that a kill finds them in the middle of it. */
async function startExecs(sandbox: OwnedSandbox, round: number): Promise<void> {
  for (let i = 0; i < 3; i++) {
    const [lines, exitCode] = [20 + ((round * 7 + i) % 30), (round + i) % 5];
    const shell = `i=0; while [ $i -lt ${lines} ]; do printf '%07d\\n' $i; i=$((i+1)); sleep 0.01; done; exit ${exitCode}`;
    const exec = await sandbox.exec({ shell, id: newId("exc") });
    promise({ type: "started", sandbox: sandbox.id, exec: exec.id, bytes: lines * 8, exitCode });
    if (i === 0) await exec.wait();
  }
  await run(sandbox, ["true"]);
}

async function writeFiles(sandbox: OwnedSandbox, round: number): Promise<void> {
  for (let i = 0; i < 4; i++) {
    const path = `/workspace/file-${i}`;
    const content = Buffer.alloc(1000 + ((round * 7919) % 200_000), round % 251);
    await sandbox.files.write(path, content);
    promise({ type: "written", sandbox: sandbox.id, path, sha256: createHash("sha256").update(content).digest("hex") });
  }
}
