import type { ExecExit } from "@slipway/contract";
import type { Exec } from "../../provider.ts";
import { openCgroup } from "./limits/cgroup-control.ts";

/** Gives execs that the kernel's OOM killer ended the reason `out_of_memory`. */
export function watchOomKills(cgroupsNow: () => Promise<readonly string[]>): (exec: Exec) => Exec {
  let seen = { group: "", kills: 0 };
  /** Whether the OOM killer has struck since the last call. */
  const hasKilled = async () => {
    const cgroups = await cgroupsNow().catch(() => []);
    const [group] = cgroups;
    if (group === undefined) return false;
    const kills = await (await openCgroup(cgroups)).oomKills();
    // Each start has groups of its own.
    const grown = kills > (seen.group === group ? seen.kills : 0);
    seen = { group, kills };
    return grown;
  };
  const refine = async (exit: ExecExit): Promise<ExecExit> =>
    exit.reason === "signaled" && exit.signal === "SIGKILL" && (await hasKilled())
      ? { ...exit, reason: "out_of_memory" }
      : exit;
  return (exec) => ({ ...exec, wait: async (options) => refine(await exec.wait(options)) });
}
