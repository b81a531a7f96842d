import { spawn } from "node:child_process";
import { chmodSync, chownSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { arch, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { newId } from "@slipway/contract";
import { type Layout, layoutOf } from "../layout.ts";
import { noCgroups } from "../limits/cgroup.ts";
import { type Identity, type LaunchSpec, launchArguments, sandboxUid } from "./launch.ts";
import { type LaunchService, startLaunchService } from "./launch-service.ts";
import { createLayerTool, type LayerTool } from "./layer-tool.ts";
import { type SeccompProfile, seccompFilter, seccompProfile } from "./seccomp.ts";
import { ensureSkeleton, hostMasks } from "./skeleton.ts";

/** A state directory with programs and a skeleton, for tests that launch by themselves. */
export interface TestHost extends AsyncDisposable {
  readonly layout: Layout;
  readonly identity: Identity | null;
  readonly launcher: string;
  readonly service: LaunchService;
  readonly layerTool: LayerTool;
  /** A new sandbox whose pid 1 is the shell script. */
  spec(script: string, change?: Partial<LaunchSpec>): LaunchSpec;
  /** Launches, and answers when pid 1 has ended: what came on the status pipe and on standard error. */
  run(spec: LaunchSpec, extraFds?: readonly number[]): Promise<Outcome>;
  /** A directory in the state directory that belongs to the sandboxes' uid. */
  directory(name: string): string;
}

export interface Outcome {
  readonly exitCode: number | null;
  readonly status: string;
  readonly output: string;
}

export async function createTestHost(): Promise<TestHost> {
  // @ts-expect-error plain JavaScript without types
  const { buildNative } = (await import("../../../../native/build.mjs")) as { buildNative(): unknown };
  buildNative();
  const root = mkdtempSync(join(tmpdir(), "slipway-"));
  chmodSync(root, 0o711);
  const layout = layoutOf(root);
  const identity = process.getuid?.() === 0 ? { uid: sandboxUid, gid: sandboxUid } : null;
  const directory = (path: string) => {
    mkdirSync(path, { recursive: true });
    if (identity !== null) chownSync(path, identity.uid, identity.gid);
    return path;
  };
  for (const path of [layout.layers, layout.boxes]) directory(path);
  for (const path of [layout.bin, layout.mountPoint]) mkdirSync(path);
  const launcher = join(layout.bin, "slipway-launch");
  copyFileSync(fileURLToPath(new URL("../../../../native/build/slipway-launch", import.meta.url)), launcher);
  for (const profile of ["user", "root", "two-users"] as const) {
    writeFileSync(filterPath(layout, profile), seccompFilter(profile, arch() === "arm64" ? "arm64" : "x64"));
  }
  const settings = { npm: { registry: null, scopes: {}, caFile: null }, pip: { indexUrls: [], caFile: null }, apt: [] };
  const skeleton = await ensureSkeleton({ layers: layout.layers, identity, settings, egressCa: "" });
  const masks = await hostMasks();
  const service = await startLaunchService({ program: launcher, socketPath: layout.launchSocket });
  const layerTool = createLayerTool(service, identity);

  return {
    layout,
    identity,
    launcher,
    service,
    layerTool,
    run: (spec, fds) => runLauncher(launcher, spec, fds),
    directory: (name) => directory(join(root, name)),
    spec(script, change = {}) {
      const id = newId("sbx");
      const user = change.user ?? "agent";
      const users = { user, secondUser: user === "root" && identity !== null };
      const agent = join(layout.bin, id);
      writeFileSync(agent, `#!/bin/sh\nexec >&2\n${script}\n`, { mode: 0o755 });
      return {
        layers: layout.layers,
        mountPoint: layout.mountPoint,
        box: layout.box(id),
        lowers: [skeleton],
        root: "host",
        ...users,
        workdir: "/workspace",
        egress: false,
        tools: [],
        forwards: [],
        identity,
        cgroup: noCgroups,
        masks,
        limits: { processes: 64, fileBytes: 0, dataBytes: 0 },
        programs: { bwrap: "/usr/bin/bwrap", agent, seccomp: filterPath(layout, seccompProfile(users)) },
        ...change,
      };
    },
    async [Symbol.asyncDispose]() {
      // Sandboxes leave directories that are closed to their own owner.
      if (identity === null) await layerTool.remove(root);
      else rmSync(root, { recursive: true, force: true });
      await service[Symbol.asyncDispose]();
    },
  };
}

function filterPath(layout: Layout, profile: SeccompProfile): string {
  return join(layout.bin, `${profile}.bpf`);
}

function runLauncher(launcher: string, spec: LaunchSpec, extraFds: readonly number[] = []): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const child = spawn(launcher, launchArguments(spec), { stdio: ["ignore", "pipe", "pipe", ...extraFds] });
    let status = "";
    let output = "";
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      status += text;
    });
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
    child.on("error", reject);
    child.on("close", (exitCode) => resolve({ exitCode, status, output }));
  });
}
