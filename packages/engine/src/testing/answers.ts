import type { Check, Intent, IntentDraft, Task } from "@slipway/contract";
import type { ModelQuestion, ModelRoles } from "../ports/models.ts";

export const draft: IntentDraft = {
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
      steps: ["Open the list", "Add an item", "Check it off"],
      success: "It is crossed out",
    },
    { id: "start-over", title: "Start over", steps: ["Open the list", "Clear it"], success: "The list is empty" },
  ],
  identity: { mood: "A tidy drawer", colours: ["#1b4d3e"], typography: "One serif", layout: "One column" },
  antiPatterns: ["A gradient behind everything"],
};

export const request = "A packing list for my trips";
export const intent: Intent = { ...draft, request };

const look = { action: "see", target: { role: "text", name: "Socks" } } as const;

function browserCheck(proves: string): Check {
  const steps = [{ action: "open", path: "/" } as const, look];
  return { type: "browser", proves, viewport: "phone", steps, appearance: null };
}

export const checks: readonly Check[] = [
  ...["add-item", "check-item", "keep-items", "phone-layout", "pack", "start-over"].map(browserCheck),
  { type: "performance", proves: "fast-start", path: "/", metric: "largestPaintMs", atMost: 1000 },
];

export function plannedTask(id: string, more: Partial<Task> = {}): Task {
  return {
    id,
    title: id,
    description: `Make ${id}`,
    component: "frontend",
    features: ["list"],
    dependencies: [],
    expectedFiles: [`src/${id}.ts`],
    estimate: { minutes: 30, usd: 2 },
    criteria: [],
    ...more,
  };
}

export const tasks: readonly Task[] = [
  plannedTask("list", { dependencies: ["setup"], criteria: ["add-item", "check-item", "phone-layout"] }),
  plannedTask("setup", { component: "backend", features: ["base"], criteria: ["fast-start"] }),
  plannedTask("storage", { component: "database", dependencies: ["setup"], criteria: ["keep-items"] }),
];

/**
 * Models that give one answer after the other, each parsed by the question's own schema; the last one again and
 * again.
 */
export function answering(...answers: readonly unknown[]): ModelRoles & { readonly asked: ModelQuestion<unknown>[] } {
  const asked: ModelQuestion<unknown>[] = [];
  return {
    asked,
    async ask(question) {
      asked.push(question);
      return { value: question.schema.parse(answers[Math.min(asked.length, answers.length) - 1]) };
    },
  };
}
