import type { Check, CheckOf, Intent, IntentDraft, Task } from "@slipway/contract";
import type { Dummies } from "../ports/dummies.ts";
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
      walk: ["list", "entry", "add", "item"],
    },
    {
      id: "start-over",
      title: "Start over",
      steps: ["Open the list", "Clear it"],
      success: "The list is empty",
      walk: ["list", "clear", "left"],
    },
  ],
  identity: { mood: "A tidy drawer", colours: ["#1b4d3e"], typography: "One serif", layout: "One column" },
  antiPatterns: ["A gradient behind everything"],
  surface: {
    pages: [
      { id: "list", path: "/", purpose: "The list" },
      { id: "one", path: "/items/{item}", purpose: "An item" },
    ],
    controls: [
      { id: "entry", page: "list", role: "textbox", name: "Item" },
      { id: "add", page: "list", role: "button", name: "Add" },
      { id: "clear", page: "list", role: "button", name: "Clear" },
      { id: "item", page: "list", role: "checkbox", name: "{item}" },
    ],
    messages: [{ id: "left", text: "{count} items left", one: "{count} item left", when: "Always" }],
    routes: [
      {
        id: "put",
        method: "POST",
        path: "/api/items",
        purpose: "Add an item",
        request: [{ field: "name", type: "text" }],
        response: [{ field: "id", type: "text" }],
      },
      {
        id: "get",
        method: "GET",
        path: "/api/items/{item}",
        purpose: "Read an item",
        request: [],
        response: [{ field: "name", type: "text" }],
      },
    ],
  },
};

export const request = "A packing list for my trips";
export const intent: Intent = { ...draft, request };

function visit(proves: string): CheckOf<"visit"> {
  return {
    type: "visit",
    proves,
    viewport: "phone",
    appearance: null,
    steps: [
      { action: "open", page: "list" },
      { action: "fill", control: "entry", with: [], value: "Socks" },
      { action: "click", control: "add", with: [] },
      { action: "see", what: { control: "item", with: [{ variable: "item", value: "Socks" }] } },
    ],
  };
}

export const checks: readonly Check[] = [
  ...["add-item", "check-item", "keep-items", "phone-layout", "pack", "start-over"].map(visit),
  {
    type: "measure",
    proves: "fast-start",
    page: "list",
    sees: { control: "add", with: [] },
    metric: "largestPaintMs",
    atMost: 1000,
  },
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

/** Every check fails on them, as it has to. */
export const dummies: Dummies = { passing: async () => [] };

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
