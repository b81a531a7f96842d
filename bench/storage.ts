import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { run as runInside, type Sandbox } from "@slipway/sandbox";
import { openProvider } from "@slipway/sandbox/open";
import { startS3Server } from "@slipway/store/testing/s3";
import { openWorkspaces, type Workspaces } from "@slipway/store/workspaces";
import { inTurn, type Report, ratio } from "./measure.ts";

const files = 2000;
const rounds = 5;

/** A sync of a tree in which nothing has changed, against one in which everything is new; on a real S3 server. */
export async function syncVersusFull(report: Report): Promise<void> {
  const scratch = mkdtempSync("/var/tmp/slipway-bench-");
  chmodSync(scratch, 0o711);
  await using server = await startS3Server();
  const { s3 } = await server.makeBucket("bench");
  await using workspaces = openWorkspaces({ root: { bucket: "bench", prefix: "" }, s3 });
  const provider = await openProvider({ stateDir: join(scratch, "state"), environment: process.env });
  const sandbox = await provider.create({ lifetimeMs: 3_600_000, idleMs: null });
  try {
    ratio(report, "sync_unchanged_vs_full", { atMost: 0.1 }, await measure(sandbox, workspaces));
  } finally {
    await sandbox.destroy();
    await provider[Symbol.asyncDispose]();
    rmSync(scratch, { recursive: true, force: true, maxRetries: 10 });
  }
}

async function measure(sandbox: Sandbox, workspaces: Workspaces) {
  const directory = "/workspace";
  const make = `i=0; while [ $i -lt ${files} ]; do head -c 2000 /dev/urandom > f$i; i=$((i+1)); done`;
  await runInside(sandbox, make, { cwd: directory });
  const unchanged = await workspaces.at({ kind: "workspace", name: "unchanged" });
  await unchanged.sync(sandbox, directory);
  let places = 0;
  return await inTurn(
    rounds,
    { run: () => unchanged.sync(sandbox, directory) },
    {
      prepare: () => workspaces.at({ kind: "workspace", name: `full-${++places}` }),
      run: (workspace) => workspace.sync(sandbox, directory),
    },
    1,
  );
}
