import type { BuildsClient, Client } from "@slipway/client";
import {
  type BuildId,
  type BuildView,
  buildSettingsSchema,
  type EventView,
  eventViewSchema,
  type IntentView,
  type ModelHealth,
  newId,
  type PlanView,
  SlipwayError,
  type Task,
  taskStatuses,
} from "@slipway/contract";

/** A server that keeps what it was asked for and answers as the test tells it to. */
export interface StubServer extends Client {
  readonly calls: (readonly [string, ...unknown[]])[];
}

export function createStubServer(
  views: readonly BuildView[],
  parts: Partial<BuildsClient> = {},
  models: readonly ModelHealth[] = [],
): StubServer {
  const calls: [string, ...unknown[]][] = [];
  const find = (id: BuildId): BuildView => {
    const view = views.find((candidate) => candidate.id === id);
    if (!view) throw new SlipwayError("build_not_found", `there is no build ${id}`);
    return view;
  };
  const order = (name: string) => async (id: BuildId) => {
    calls.push([name, id]);
    return find(id);
  };
  const builds: Partial<BuildsClient> = {
    get: async (id) => find(id),
    list: async ({ limit = 20 } = {}) => ({ builds: views.slice(0, limit), next: null }),
    pause: order("pause"),
    resume: order("resume"),
    cancel: order("cancel"),
    lock: order("lock"),
    async setBudget(id, { budgetMicroUsd, resume = false }) {
      calls.push(["setBudget", id, budgetMicroUsd, ...(resume ? ["resume"] : [])]);
      return find(id);
    },
    costs: async () => ({
      money: { budgetMicroUsd: 0, spentMicroUsd: 0, reservedMicroUsd: 0 },
      by: { task: [], attempt: [], agent: [], gate: [], provider: [] },
    }),
    mergeQueue: async () => ({ main: null, window: 0, candidates: [], merges: [], gates: [] }),
    branches: async () => ({ repository: null, branches: [] }),
    async start(wanted) {
      calls.push(["start", wanted]);
      return views[0] ?? buildView();
    },
    ...parts,
  };
  return {
    calls,
    server: { health: async () => ({ status: "ok", version: "0.0.0", pid: 1, models }) },
    builds: new Proxy(builds, {
      get(object, key) {
        if (key in object) return Reflect.get(object, key);
        throw new Error(`this test does not expect the use of ${String(key)}`);
      },
    }) as BuildsClient,
  };
}

export function buildView(changes: Partial<BuildView> = {}): BuildView {
  return {
    id: newId("bld"),
    project: "default",
    mode: "new",
    request: "a habit tracker",
    status: "running",
    reason: null,
    createdAt: Date.now() - 90_000,
    updatedAt: Date.now(),
    endedAt: null,
    lastEvent: 3,
    tasks: Object.fromEntries(taskStatuses.map((status) => [status, 0])) as BuildView["tasks"],
    money: { budgetMicroUsd: 100_000_000, spentMicroUsd: 12_000, reservedMicroUsd: 0 },
    settings: buildSettingsSchema.parse({}),
    source: null,
    planning: null,
    taskList: [],
    attempts: [],
    sandboxes: [],
    candidates: [],
    criteria: [],
    main: null,
    repository: null,
    result: null,
    repositoryMissing: false,
    disputes: [],
    preview: null,
    nothingToShow: null,
    pullRequest: null,
    remoteFailure: null,
    ...changes,
  };
}

/** An event as a server sends it. */
export interface Sent {
  readonly type: string;
  readonly data: object;
}

/** The event as the client reads it. */
export function eventOf(sent: Sent, sequence = 1): EventView {
  return eventViewSchema.parse({ sequence, at: 1_700_000_000_000, ...sent });
}

export function follow(...events: readonly Sent[]): BuildsClient["follow"] {
  return async function* () {
    for (const [index, event] of events.entries()) yield eventOf(event, index + 1);
  };
}

export const intent: IntentView = {
  status: "locked",
  hash: `sha256:${"a".repeat(64)}`,
  lockedAtMs: 1,
  intent: {
    request: "a habit tracker",
    appType: "web app",
    character: "Calm",
    coreValue: "Know what to do",
    criteria: [
      { id: "add-habit", kind: "functional", statement: "A habit can be added" },
      { id: "phone", kind: "visual", statement: "Nothing is cut off on a phone" },
    ],
    workflows: [{ id: "first-use", title: "First use", steps: ["Open it", "Add a habit"], success: "It is listed" }],
    identity: { mood: "A tidy desk", colours: ["#16324f"], typography: "One serif", layout: "One column" },
    antiPatterns: ["A gradient behind everything"],
  },
};

function task(id: string, dependencies: readonly string[], minutes: number): Task {
  return {
    id,
    title: `Make ${id}`,
    description: id,
    component: "frontend",
    features: ["list"],
    dependencies: [...dependencies],
    expectedFiles: [],
    estimate: { minutes, usd: 1.5 },
    criteria: [],
  };
}

export const plan: PlanView = {
  mode: "new",
  intentHash: `sha256:${"a".repeat(64)}`,
  round: 1,
  partition: "feature",
  tasks: [
    task("setup", [], 10),
    task("list", ["setup"], 30),
    task("store", ["setup"], 20),
    task("end", ["list", "store"], 5),
  ],
  parts: [{ name: "list", tasks: ["setup", "list", "store", "end"] }],
  criticalPath: { tasks: ["setup", "list", "end"], minutes: 45 },
  totals: { minutes: 65, usd: 6, computeUsd: 0 },
};
