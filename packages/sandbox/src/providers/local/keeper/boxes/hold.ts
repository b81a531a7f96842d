import { type Cgroup, openCgroup } from "../../limits/cgroup-control.ts";
import type { AgentLink } from "./agent-link.ts";
import type { Box } from "./boxes.ts";
import { allProcesses, namespaceOf } from "./process.ts";

/** Freezes and thaws a sandbox: by its control group where that can freeze, else by signals from pid 1. */
export interface Hold {
  /** Whether programs inside cannot continue themselves. */
  readonly isFirm: boolean;
  freeze(box: Box): Promise<void>;
  thaw(box: Box): Promise<void>;
  oomKills(box: Box): Promise<number>;
  /** How many of them the events have told. */
  readonly toldOomKills: WeakMap<Box, number>;
  /** Host pids of the processes inside. */
  processes(box: Box): Promise<number[]>;
  /** Kills what is left in the control groups and removes them. */
  release(box: Box): Promise<void>;
}

export function createHold(agent: AgentLink, freezesByCgroup: boolean): Hold {
  const opened = new WeakMap<Box, { directories: readonly string[]; cgroup: Promise<Cgroup> }>();
  const cgroupOf = (box: Box): Promise<Cgroup> => {
    const directories = box.record.cgroups;
    const known = opened.get(box);
    if (known?.directories === directories) return known.cgroup;
    const cgroup = openCgroup(directories);
    opened.set(box, { directories, cgroup });
    return cgroup;
  };
  const byCgroup = (box: Box) => freezesByCgroup && box.record.cgroups.length > 0;
  const thaw = async (box: Box) => {
    if (!byCgroup(box)) return await agent.setStopped(box, false);
    await (await cgroupOf(box)).thaw();
    await agent.setClock(box, true);
  };
  return {
    isFirm: freezesByCgroup,
    toldOomKills: new WeakMap(),
    async freeze(box) {
      try {
        if (!byCgroup(box)) return await agent.setStopped(box, true);
        const cgroup = await cgroupOf(box);
        // A frozen agent does not answer, and has stopped its clock before.
        if (!(await cgroup.isFreezing())) await agent.setClock(box, false);
        await cgroup.freeze();
      } catch (error) {
        // Some processes may be frozen already.
        await thaw(box).catch(() => undefined);
        throw error;
      }
    },
    thaw,
    async oomKills(box) {
      return box.record.cgroups.length === 0 ? 0 : (await cgroupOf(box)).oomKills();
    },
    async processes(box) {
      const { process, cgroups } = box.record;
      if (process === null) return [];
      // The groups also hold the outer bubblewrap.
      return namespaceOf(process, cgroups.length === 0 ? allProcesses() : await (await cgroupOf(box)).processes());
    },
    async release(box) {
      if (box.record.cgroups.length === 0) return;
      const cgroup = await cgroupOf(box);
      await cgroup.kill();
      await cgroup.remove();
    },
  };
}
