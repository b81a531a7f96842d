import type { Check, Surface, Task } from "@slipway/contract";
import {
  type Action,
  isSideCall,
  type ScriptedProgram,
  type ScriptedRequest,
  sideAnswer,
  type Turn,
} from "@slipway/gateway/scripted";
import { criteria, generatedIntent } from "../simulated/generated.ts";

/** A task as its agent does it. What is left out is done as well as can be. */
export interface ScriptedTask {
  readonly id: string;
  readonly dependencies?: readonly string[];
  readonly criteria?: readonly string[];
  /** What it does first. Left out: it adds a part with its test. */
  readonly build?: (given: Given) => readonly Action[] | Promise<readonly Action[]>;
  /** What it does when its checks fail. */
  readonly fix?: (given: Given) => readonly Action[];
  /** What it does when the host has found something in its offer. */
  readonly findings?: (given: Given) => readonly Action[];
  /** What it makes of a file with both sides in it. Left out: it keeps both. */
  readonly solve?: (marked: string) => string;
}

export interface Given {
  /** All that it was told last. */
  readonly text: string;
  /** Whether an attempt before this one has failed. */
  readonly isRetry: boolean;
}

export interface ScriptedAppOptions {
  readonly checks?: readonly Check[];
  /** Its first page is walked by every workflow. */
  readonly surface?: Surface;
  /** The app is there: its first task makes none. */
  readonly isThere?: boolean;
  /** What the app's own task does beside making it. */
  readonly beside?: readonly Action[];
}

/**
 * An app of parts, without a single dependency: a server that answers `/<part>` by what `parts/<part>.js` says, and a test for
 * each. Its plan is the given tasks, after one that makes the app, unless there is one; its checks are `checks`.
 */
export function scriptedApp(
  tasks: readonly ScriptedTask[],
  { checks = usualChecks, surface = usualSurface, isThere = false, beside = [] }: ScriptedAppOptions = {},
): ScriptedProgram {
  const all: readonly ScriptedTask[] = isThere ? tasks : [baseWith(beside), ...tasks];
  const [{ id: first = "" } = {}] = surface.pages;
  const workflows = intent.workflows.map((one) => ({ ...one, walk: [first, first] }));
  return (request) => {
    const schema = request.answerSchema && JSON.stringify(request.answerSchema.schema);
    if (schema?.includes('"coreValue"')) return { object: { ...draft, workflows, surface } };
    if (schema?.includes('"proves"')) return { object: { checks } };
    if (schema?.includes('"expectedFiles"')) return { object: { tasks: planOf(all) } };
    return isSideCall(request) ? sideAnswer(request) : agentTurn(all, request);
  };
}

const { request: _, ...intent } = generatedIntent({ request: "" }).intent;
/** Nothing that needs a browser to be seen. */
const draft = { ...intent, criteria: intent.criteria.map((one) => ({ ...one, kind: "functional" })) };

const usualSurface: Surface = {
  pages: [{ id: "home", path: "/", purpose: "All parts" }],
  controls: [],
  messages: [{ id: "parts", text: "parts", one: null, when: "Always" }],
  routes: [
    { id: "get-home", method: "GET", path: "/", purpose: "All parts", request: [], response: [] },
    { id: "get-part", method: "GET", path: "/{part}", purpose: "What a part says", request: [], response: [] },
  ],
};

/** All that is promised is that the app answers: what a test is about, it checks itself. */
export const usualChecks: readonly Check[] = [
  ...criteria.map((proves) => refuses(proves, "no-such-part")),
  ...["pack", "start-over"].map((proves) => shows(proves, "home", "parts")),
];

/** The app answers, but not for this part. Needs no browser. */
export function refuses(proves: string, part: string): Check {
  const plain = { send: [], keep: [] };
  const answered = (answer: "accepted" | "refused") => ({ answer, has: [], lacks: [] });
  return {
    type: "calls",
    proves,
    calls: [
      { ...plain, route: "get-home", with: [], expect: answered("accepted") },
      { ...plain, route: "get-part", with: [{ variable: "part", value: part }], expect: answered("refused") },
    ],
  };
}

export function shows(proves: string, page: string, message: string): Check {
  return {
    type: "visit",
    proves,
    viewport: "phone",
    appearance: null,
    steps: [
      { action: "open", page },
      { action: "see", what: { message, with: [] } },
    ],
  };
}

function planOf(tasks: readonly ScriptedTask[]): Task[] {
  const named = new Set(tasks.flatMap((task) => task.criteria ?? []));
  const [{ id: first = base.id } = {}] = tasks;
  return tasks.map(({ id, dependencies = [first], criteria: own = [] }, index) => ({
    id,
    title: id,
    description: `Make ${id}`,
    component: "backend",
    features: ["parts"],
    expectedFiles: [],
    dependencies: index === 0 ? [] : [...dependencies],
    estimate: { minutes: 5, usd: 0.1 },
    criteria: index === 0 ? criteria.filter((criterion) => !named.has(criterion)) : [...own],
  }));
}

/** A part, and the test that belongs to it. */
export function part(id: string, says = id): Action[] {
  return [
    { write: `parts/${id}.js`, content: `export default ${JSON.stringify(says)};\n` },
    { write: `tests/${id}.test.js`, content: testOf(id, says) },
  ];
}

function testOf(id: string, says: string): string {
  return [
    'import assert from "node:assert";',
    'import test from "node:test";',
    `import part from "../parts/${id}.js";`,
    `test("${id} says what it should", () => assert.equal(part, ${JSON.stringify(says)}));\n`,
  ].join("\n");
}

const server = `import { createServer } from "node:http";
import { readdir } from "node:fs/promises";
const names = (await readdir(new URL("parts/", import.meta.url))).map((name) => name.replace(/\\.js$/, ""));
const parts = new Map();
for (const name of names) parts.set("/" + name, (await import("./parts/" + name + ".js")).default);
createServer((request, response) => {
  const text = request.url === "/" ? "parts: " + names.join(", ") : parts.get(request.url);
  response.statusCode = text === undefined ? 404 : 200;
  response.end(String(text));
}).listen(Number(process.env.PORT), "127.0.0.1");
`;

/** All in one process: a build runs them often. */
const tests = `import { readdir } from "node:fs/promises";
for (const name of await readdir(new URL("tests/", import.meta.url))) await import("./tests/" + name);
`;

const manifest = {
  name: "parts",
  private: true,
  type: "module",
  scripts: { dev: "node server.js", test: "node tests.js" },
};

/** As npm writes it: without one, each install of each attempt would. */
const lock = { name: manifest.name, lockfileVersion: 3, requires: true, packages: { "": { name: manifest.name } } };

const base = { id: "base" };

/** Makes the app, with a first part. */
function baseWith(beside: readonly Action[]): ScriptedTask {
  const app = [
    { write: "package.json", content: `${JSON.stringify(manifest, null, 2)}\n` },
    { write: "package-lock.json", content: `${JSON.stringify(lock, null, 2)}\n` },
    { write: "server.js", content: server },
    { write: "tests.js", content: tests },
    ...part(base.id),
  ];
  return { ...base, build: () => [...app, ...beside] };
}

const beginnings = {
  build: /^Your task: /,
  fix: /^`[^\n]+` fails (on your work|in a clean checkout)/,
  conflict: /^(Main has moved on, and its changes conflict|These files still have conflict marks)/,
  findings: /^Checks of your work have found this/,
} as const;

/** One turn that acts, and one that ends. */
async function agentTurn(
  tasks: readonly ScriptedTask[],
  { request, lastPrompt, results, step }: ScriptedRequest,
): Promise<Turn> {
  const texts = request.messages.flatMap(({ role, parts }) =>
    role === "user" ? parts.flatMap((one) => (one.type === "text" ? [one.text.trim()] : [])) : [],
  );
  const first = texts.find((text) => beginnings.build.test(text)) ?? "";
  const task = tasks.find(({ id }) => first.startsWith(`Your task: ${id}\n`));
  if (task === undefined) return { text: "There is nothing for me to do." };
  const given = { text: lastPrompt, isRetry: first.includes("What earlier attempts ended with:") };
  const kind = Object.entries(beginnings).find(([, beginning]) => beginning.test(lastPrompt.trim()))?.[0];
  if (kind === "conflict")
    return conflictTurn(
      task,
      given,
      results.map(({ text }) => text),
      step,
    );
  const { build = () => part(task.id), fix = () => [], findings = () => [] } = task;
  const act = { build, fix, findings }[kind ?? ""];
  const actions = step === 0 && act ? await act(given) : [];
  return actions.length > 0 ? { text: "I do it.", actions } : { text: "It is done." };
}

/** Looks at the files, writes them, and ends. */
function conflictTurn(
  { solve = keepBoth }: ScriptedTask,
  { text }: Given,
  results: readonly string[],
  step: number,
): Turn {
  const [list = ""] = text.split("\n<", 1);
  const paths = [...list.matchAll(/^- (.+)$/gm)].map(([, path = ""]) => path);
  if (step === 0) {
    const show = paths.map((path) => `echo '--- ${path}'; cat '${path}'; echo '--- end'`).join("; ");
    return { text: "I look at both sides.", actions: [{ run: show }] };
  }
  const shown = results.join("\n");
  if (!shown.includes("--- end")) return { text: "Both sides are kept." };
  const actions = paths.map((path) => {
    const marked = (shown.split(`--- ${path}\n`)[1] ?? "").split("--- end", 1)[0] ?? "";
    return { run: `cat > '${path}' <<'END OF FILE'\n${solve(marked)}END OF FILE` };
  });
  return { text: "I write both.", actions };
}

export function keepBoth(marked: string): string {
  return marked.replace(/^(<<<<<<<|=======|>>>>>>>|\|\|\|\|\|\|\|).*\n/gm, "");
}
