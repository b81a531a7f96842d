import { execFile } from "node:child_process";
import { chmod, chown, copyFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { arch } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { launchArguments } from "../launch/launch.ts";
import { seccompFilter } from "../launch/seccomp.ts";
import { layoutOf } from "../layout.ts";
import { noCgroups } from "../limits/cgroup.ts";

export interface ProbeOptions {
  /** A directory on the file system to try. */
  readonly place: string;
  readonly launch: string;
  readonly bwrap: string;
  readonly sandboxUid: number;
}

const run = promisify(execFile);

/** Starts a sandbox that ends at once. Null when that works, else the program's message. */
export async function probeSandbox({ place, launch, bwrap, sandboxUid }: ProbeOptions): Promise<string | null> {
  const identity = process.getuid?.() === 0 ? { uid: sandboxUid, gid: sandboxUid } : null;
  const root = await mkdtemp(join(place, ".slipway-doctor-"));
  const layout = layoutOf(root);
  const box = layout.box("probe" as Parameters<typeof layout.box>[0]);
  const seccomp = join(root, "filter");
  const program = join(root, "launch");
  try {
    await chmod(root, 0o711);
    for (const path of [layout.layers, layout.boxes, layout.mountPoint]) await mkdir(path);
    const base = join(layout.layers, "base", "fs");
    await mkdir(join(base, "etc"), { recursive: true });
    await writeFile(seccomp, seccompFilter("user", arch() === "arm64" ? "arm64" : "x64"));
    await copyFile(launch, program);
    if (identity !== null) {
      for (const path of [layout.layers, layout.boxes, base, join(base, "etc")])
        await chown(path, identity.uid, identity.gid);
    }
    const args = launchArguments({
      layers: layout.layers,
      mountPoint: layout.mountPoint,
      box,
      lowers: ["base"],
      root: "rootfs",
      user: "agent",
      secondUser: false,
      workdir: "/workspace",
      egress: false,
      tools: [],
      forwards: [],
      identity,
      cgroup: noCgroups,
      limits: { processes: 16, fileBytes: 0, dataBytes: 0 },
      // Stands in for the agent: its usage message proves that it was reached.
      programs: { bwrap, agent: program, seccomp },
      masks: { usrEtc: false, emptied: [], closed: [] },
    });
    await run(program, args, { env: {}, timeout: 20_000 });
    return null;
  } catch (error) {
    const { stderr, message } = error as { stderr?: string; message: string };
    // Started as pid 1, the launcher refuses the agent's arguments.
    return stderr?.includes("expected 'run' or 'layer'") ? null : stderr?.trim() || message;
  } finally {
    const who = identity === null ? [] : ["--uid", String(sandboxUid), "--gid", String(sandboxUid)];
    await run(launch, ["layer", ...who, "remove", box.root], { env: {} }).catch(() => {});
    await rm(root, { recursive: true, force: true });
  }
}
