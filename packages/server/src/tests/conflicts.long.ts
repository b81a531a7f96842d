import type { BuildEvent } from "@slipway/engine";
import type { Action } from "@slipway/gateway/scripted";
import { expect, test } from "vitest";
import { criteria } from "../simulated/generated.ts";
import { type Given, keepBoth, part, type ScriptedTask, scriptedApp } from "../testing/scripted-app.ts";
import { testsOf, unique } from "../testing/tests-of.ts";
import { openWorld } from "../testing/world.ts";

const limitMs = 1_500_000;
const pairs = ["one", "two", "three", "four", "five"];

const beside: readonly Action[] = [
  { write: "tests/unique.test.js", content: unique },
  ...pairs.map((pair) => ({ write: `lists/${pair}.txt`, content: "first\n" })),
];

/** Both add to the end of the same file. */
function textual(pair: string, onConflict: (pair: string) => void): ScriptedTask[] {
  const solve = (marked: string) => {
    onConflict(pair);
    return keepBoth(marked);
  };
  return ["a", "b"].map((side) => {
    const id = `text-${pair}-${side}`;
    return { id, build: () => [...part(id), { run: `echo ${side} >> lists/${pair}.txt` }], solve };
  });
}

/** Both say the same, in files of their own. Whoever comes second finds other words. */
function behavioural(pair: string, onConflict: (pair: string) => void): ScriptedTask[] {
  return ["a", "b"].map((side) => {
    const id = `words-${pair}-${side}`;
    const mend = ({ text }: Given) => {
      if (text.includes(`says what words-${pair}`)) onConflict(pair);
      return part(id, `${pair} ${side}`);
    };
    // In the sandbox, when main has the other one already; else by the queue.
    return { id, build: () => part(id, pair), fix: mend, findings: mend };
  });
}

/** Both say the same, and neither ever says something else. */
const stubborn = ["a", "b"].map((side): ScriptedTask => {
  const id = `stubborn-${side}`;
  // They are never both there: so what the criteria ask for is looked at in the end only, and each merge takes less time.
  return { id, build: () => part(id, "stubborn"), criteria: [...criteria] };
});

test(
  "of twenty attempts that overlap in pairs all that can be is merged, each time to a green main",
  async () => {
    const conflicts = { text: new Set<string>(), words: new Set<string>() };
    const tasks = [
      ...pairs.flatMap((pair) => textual(pair, (one) => conflicts.text.add(one))),
      ...pairs.slice(1).flatMap((pair) => behavioural(pair, (one) => conflicts.words.add(one))),
      ...stubborn,
    ];
    expect(tasks).toHaveLength(20);
    const { all, together } = meetingOf(tasks);
    await using builds = await openWorld({
      sandboxes: "local",
      server: { program: scriptedApp(together, { beside }) },
    });
    const build = await builds.start({ settings: { slots: 20 } });
    const ending = builds.ended(build, limitMs);
    await Promise.race([all, ending]);
    const atWork = await builds.provider.list({ labels: { build, purpose: "attempt" } });
    const view = await ending;
    const events = await builds.events(build);

    expect(view.status, [...events.slice(-20).map(tell), ...builds.warnings].join("\n")).toBe("succeeded");
    expect(atWork.filter(({ state }) => state === "running")).toHaveLength(20);
    expect(mostAtWork(events)).toBe(20);

    const merged = tasksOf(events, "task.merged");
    const [left = "", ...others] = tasks.map(({ id }) => id).filter((id) => !merged.includes(id));
    expect(others).toEqual([]);
    expect(left).toMatch(/^stubborn-/);
    expect(merged).toHaveLength(19);
    const failed = events.find(({ type }) => type === "task.failed");
    expect(failed?.data).toMatchObject({ task: left, failure: { reason: "exhausted" } });
    const ends = events.filter(({ type, data }) => type === "attempt.ended" && data["task"] === left);
    for (const end of ends) expect(tell(end)).toMatch(/says what stubborn-[ab]\.js says/);
    expect([...conflicts.text].toSorted()).toEqual(pairs.toSorted());
    expect([...conflicts.words].toSorted()).toEqual(pairs.slice(1).toSorted());

    const mains = events.flatMap(({ type, data }) =>
      type === "merge.ended" && data["merged"] === true ? [(data["main"] as { commit: string }).commit] : [],
    );
    expect(mains).toHaveLength(20);
    const repository = await builds.repository(build);
    for (const commit of mains) expect(await testsOf(repository, commit), commit).toBe("green");
    for (const pair of pairs) {
      const lines = (await builds.file(build, `lists/${pair}.txt`))?.trim().split("\n");
      expect(lines?.toSorted()).toEqual(["a", "b", "first"]);
    }
  },
  limitMs,
);

/** The tasks, whose agents begin when all of them are there. */
function meetingOf(tasks: readonly ScriptedTask[]) {
  const { promise: all, resolve } = Promise.withResolvers<void>();
  const there = new Set<string>();
  const together = tasks.map((task): ScriptedTask => {
    const build: ScriptedTask["build"] = async (given) => {
      there.add(task.id);
      if (there.size === tasks.length) resolve();
      await all;
      return (await task.build?.(given)) ?? [];
    };
    return { ...task, build };
  });
  return { all, together };
}

/** Attempts that were heard and not closed yet, at the most. */
function mostAtWork(events: readonly BuildEvent[]): number {
  const open = new Set<string>();
  return Math.max(
    ...events.map(({ type, data: { task, attempt } }) => {
      if (type === "attempt.heard") open.add(`${task} ${attempt}`);
      if (type === "attempt.closed") open.delete(`${task} ${attempt}`);
      return open.size;
    }),
  );
}

function tasksOf(events: readonly BuildEvent[], wanted: string): string[] {
  return events
    .filter(({ type, data }) => type === wanted && data["task"] !== "base")
    .map(({ data }) => `${data["task"]}`);
}

function tell({ at, type, data }: BuildEvent): string {
  return `${at} ${type} ${JSON.stringify(data).slice(0, 2000)}`;
}
