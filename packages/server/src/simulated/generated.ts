import type { BuildId, Check, ContentHash, Intent, OpenIntent, Plan, Task } from "@slipway/contract";
import { planLimits, usualComponents } from "@slipway/contract";
import type { WorkingBuild } from "@slipway/engine";
import { between, draw } from "./chance.ts";
import { estimateOf, type SimulationSettings } from "./fate.ts";

export const criteria = ["add-item", "check-item", "keep-items", "phone-layout", "fast-start"] as const;

/** The same for every build, except for the request. */
export function generatedIntent({ request }: Pick<WorkingBuild, "request">): OpenIntent {
  const intent: Intent = {
    request,
    appType: "web app",
    character: "Calm and quick",
    coreValue: "Know what to pack",
    criteria: [
      { id: "add-item", kind: "functional", statement: "An item can be added to a list" },
      { id: "check-item", kind: "functional", statement: "An item can be checked off" },
      { id: "keep-items", kind: "functional", statement: "Items are there after a reload" },
      { id: "phone-layout", kind: "visual", statement: "Nothing is cut off on a phone" },
      { id: "fast-start", kind: "performance", statement: "The first page is there within a second" },
    ],
    workflows: [
      {
        id: "pack",
        title: "Pack a bag",
        steps: ["Open the list", "Add an item"],
        success: "The item is listed",
        walk: ["list", "entry", "add", "item"],
      },
      {
        id: "start-over",
        title: "Start over",
        steps: ["Open the list", "Clear it"],
        success: "The list is empty",
        walk: ["list", "clear", "empty"],
      },
    ],
    identity: { mood: "A tidy drawer", colours: ["#1b4d3e"], typography: "One serif", layout: "One column" },
    antiPatterns: ["A gradient behind everything"],
    surface: {
      pages: [{ id: "list", path: "/", purpose: "The list" }],
      controls: [
        { id: "entry", page: "list", role: "textbox", name: "Item" },
        { id: "add", page: "list", role: "button", name: "Add" },
        { id: "clear", page: "list", role: "button", name: "Clear" },
        { id: "item", page: "list", role: "checkbox", name: "{item}" },
      ],
      messages: [{ id: "empty", text: "Nothing to pack", one: null, when: "The list has no items" }],
      routes: [],
    },
  };
  return { status: "open", intent };
}

export function generatedChecks(intentHash: ContentHash) {
  const looks = [...criteria.slice(0, -1), "pack", "start-over"].map(
    (proves): Check => ({
      type: "visit",
      proves,
      viewport: "phone",
      appearance: null,
      steps: [
        { action: "open", page: "list" },
        { action: "fill", control: "entry", with: [], value: "Socks" },
        { action: "click", control: "add", with: [] },
        { action: "see", what: { value: "Socks" } },
      ],
    }),
  );
  const sees = { control: "add", with: [] };
  const fast: Check = {
    type: "measure",
    proves: "fast-start",
    page: "list",
    sees,
    metric: "largestPaintMs",
    atMost: 1000,
  };
  return { intentHash, checks: [...looks, fast] };
}

/** The tasks of a round, in dependency order. */
export function generatedTasks(
  settings: SimulationSettings,
  build: BuildId,
  { round, serves }: { readonly round: number; readonly serves: readonly string[] },
): Plan["tasks"] {
  const { seed, edgeProbability } = settings;
  const count = between(settings.tasks, draw(seed, build, round, "tasks"));
  const ids = Array.from({ length: count }, (_, index) => `round-${round}-task-${`${index + 1}`.padStart(3, "0")}`);
  return ids.map((id, index): Task => {
    const dependencies = ids
      .slice(0, index)
      .filter((before) => draw(seed, build, id, before, "edge") < edgeProbability)
      .slice(0, planLimits.maxDependencies);
    return {
      id,
      title: id,
      description: `Make ${id}`,
      dependencies,
      features: ["list"],
      component: usualComponents[index % usualComponents.length] ?? "frontend",
      expectedFiles: [`src/${id}.ts`],
      estimate: { minutes: estimateOf(settings, { build, task: id }), usd: 1 },
      criteria: serves.filter((_, criterion) => criterion % count === index),
    };
  });
}
