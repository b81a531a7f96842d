import type { Criterion, Intent, Task } from "@slipway/contract";

const maxFeatureTasks = 6;

/** 6 to 11 tasks: the base, then the features side by side, then what looks at the whole. */
export function planFor({ criteria, workflows, coreValue }: Intent, isNew: boolean): Task[] {
  const ground = isNew
    ? task("setup", "backend", {
        title: "Set up the project",
        features: ["base"],
        description: `Set up a project that builds, runs and can be tested. ${coreValue}`,
        expectedFiles: ["package.json", "src/main.ts", "src/server.ts"],
        estimate: { minutes: 20, usd: 0.8 },
      })
    : task("groundwork", "backend", {
        title: "Cover what is there with tests",
        features: ["base"],
        description: `Find the places that change, and hold what they do today by tests. ${coreValue}`,
        estimate: { minutes: 25, usd: 1 },
      });
  const data = task("data", "database", {
    title: "Keep what users enter",
    features: ["base"],
    description: "Tables and queries for all that users enter, kept over restarts.",
    dependencies: [ground.id],
    estimate: { minutes: 30, usd: 1.2 },
  });
  const functional = criteria.filter(({ kind }) => kind === "functional");
  const features = featureTasks(functional, { dependencies: [data.id], taken: new Set() });
  const look = task("look", "frontend", {
    title: "Give it its look",
    features: ["look"],
    description: "Colours, typefaces and layout as the contract says, on a phone and on a desk.",
    dependencies: [ground.id],
    criteria: idsOf(criteria.filter(({ kind }) => kind === "visual")),
    estimate: { minutes: 40, usd: 1.6 },
  });
  const whole = [...features.map(({ id }) => id), look.id];
  const speed = task("speed", "frontend", {
    title: "Make it quick",
    description: "Measure the first page and take away what makes it wait.",
    dependencies: whole,
    criteria: idsOf(criteria.filter(({ kind }) => kind === "performance")),
    estimate: { minutes: 20, usd: 0.8 },
  });
  const walkthrough = task("walkthrough", "frontend", {
    title: "Walk through every workflow",
    description: `Test from end to end: ${workflows.map(({ title }) => title).join("; ")}`.slice(0, 4000),
    dependencies: whole,
    estimate: { minutes: 30, usd: 1.2 },
  });
  return [ground, data, ...features, look, speed, walkthrough];
}

/** Tasks for a later round: what is not satisfied, under names that no task has. */
export function remainingFor({ criteria }: Intent, unsatisfied: string, tasks: string): Task[] {
  const missing = new Set(unsatisfied.split("\n").map((line) => line.split(":", 1)[0]?.trim()));
  const taken = new Set(tasks.split("\n").map((line) => line.split(" ", 1)[0]?.trim() ?? ""));
  return featureTasks(
    criteria.filter(({ id }) => missing.has(id)),
    { dependencies: [], taken },
  );
}

interface Surroundings {
  readonly dependencies: string[];
  /** Names of tasks. New ones are added. */
  readonly taken: Set<string>;
}

function featureTasks(criteria: readonly Criterion[], { dependencies, taken }: Surroundings): Task[] {
  return groups(criteria, maxFeatureTasks).map((group) => {
    const id = freeName(`make-${group[0]?.id ?? "it"}`, taken);
    taken.add(id);
    const statements = group.map(({ statement }) => statement);
    return task(id, "frontend", {
      title: (statements[0] ?? id).slice(0, 200),
      features: ["entries"],
      description: `Make this true, and show it by a test: ${statements.join(" ")}`.slice(0, 4000),
      dependencies,
      criteria: idsOf(group),
      estimate: { minutes: 25 + 10 * group.length, usd: 1 + 0.4 * group.length },
    });
  });
}

const maxNameCharacters = 56;

function freeName(wanted: string, taken: ReadonlySet<string>): string {
  const base = wanted.slice(0, maxNameCharacters).replace(/-+$/, "");
  let name = base;
  for (let count = 2; taken.has(name); count++) name = `${base}-${count}`;
  return name;
}

function task(
  id: string,
  component: string,
  more: Partial<Task> & Pick<Task, "title" | "description" | "estimate">,
): Task {
  return {
    id,
    component,
    features: ["whole"],
    dependencies: [],
    criteria: [],
    expectedFiles: [`src/${component}/${id}.ts`, `src/${component}/${id}.test.ts`],
    ...more,
  };
}

function idsOf(criteria: readonly Criterion[]): string[] {
  return criteria.map(({ id }) => id);
}

/** Splits values into at most this many groups, whose sizes differ by at most one. */
function groups<T>(values: readonly T[], most: number): T[][] {
  const count = Math.min(values.length, most);
  return Array.from({ length: count }, (_, group) => values.filter((_, index) => index % count === group));
}
