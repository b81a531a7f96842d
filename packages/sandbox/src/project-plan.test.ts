import { describe, expect, test } from "vitest";
import {
  type ProjectFacts,
  packageManagerOf,
  parseManifest,
  planDevServer,
  planInstall,
  planScript,
  planTest,
} from "./project-plan.ts";

function facts(names: string[], manifest?: object): ProjectFacts {
  return { names: new Set(names), manifest: manifest === undefined ? null : parseManifest(JSON.stringify(manifest)) };
}

describe("dependencies", () => {
  const table: [string, ProjectFacts, string[][]][] = [
    ["an npm lock", facts(["package-lock.json"], {}), [["npm", "ci"]]],
    ["a manifest alone", facts([], {}), [["npm", "install"]]],
    ["a pnpm lock", facts(["pnpm-lock.yaml"], {}), [["pnpm", "install", "--frozen-lockfile"]]],
    ["a manifest that names pnpm", facts([], { packageManager: "pnpm@10.1.0" }), [["pnpm", "install"]]],
    ["a yarn 1 lock", facts(["yarn.lock"], {}), [["yarn", "install", "--frozen-lockfile"]]],
    ["a yarn 4 lock", facts(["yarn.lock", ".yarnrc.yml"], {}), [["yarn", "install", "--immutable"]]],
    [
      "requirements",
      facts(["requirements.txt"]),
      [
        ["python3", "-m", "venv", ".venv"],
        [".venv/bin/pip", "install", "-r", "requirements.txt"],
      ],
    ],
    [
      "a Python project",
      facts(["pyproject.toml"]),
      [
        ["python3", "-m", "venv", ".venv"],
        [".venv/bin/pip", "install", "-e", "."],
      ],
    ],
    ["neither", facts(["README.md"]), []],
  ];
  test.each(table)("of a project with %s", (_name, project, commands) => {
    expect(planInstall(project)).toEqual(commands);
  });

  test("a lock file outweighs what the manifest says", () => {
    expect(packageManagerOf(facts(["yarn.lock"], { packageManager: "pnpm@9" }))).toBe("yarn");
  });
});

describe("a dev server", () => {
  const argvOf = (project: ProjectFacts) => planDevServer(project, 5173)?.argv;

  test("of Vite is told its port, and not to take another", () => {
    const project = facts(["package-lock.json"], { scripts: { dev: "vite" }, devDependencies: { vite: "7" } });
    expect(argvOf(project)).toEqual([
      "npm",
      "run",
      "dev",
      "--",
      "--port",
      "5173",
      "--strictPort",
      "--host",
      "127.0.0.1",
    ]);
  });

  test("of Next.js is told its port", () => {
    const project = facts(["pnpm-lock.yaml"], { scripts: { dev: "next dev" }, dependencies: { next: "16" } });
    expect(argvOf(project)).toEqual(["pnpm", "run", "dev", "--port", "5173", "--hostname", "127.0.0.1"]);
  });

  test("of anything else gets its port by the variable", () => {
    expect(planDevServer(facts([], { scripts: { start: "node server.js" } }), 4000)).toEqual({
      argv: ["npm", "run", "start"],
      env: { PORT: "4000", HOST: "127.0.0.1", HOSTNAME: "127.0.0.1", BROWSER: "none" },
    });
  });

  test("of Vite without a script is Vite itself, of plain pages a file server", () => {
    expect(argvOf(facts([], { devDependencies: { vite: "7" } }))?.slice(0, 2)).toEqual(["npx", "vite"]);
    expect(argvOf(facts(["index.html"]))).toEqual(["python3", "-m", "http.server", "5173", "--bind", "127.0.0.1"]);
    expect(argvOf(facts(["README.md"]))).toBeUndefined();
  });
});

test("a script is run only when the manifest has it", () => {
  const project = facts(["yarn.lock"], { scripts: { build: "tsc" } });
  expect(planScript(project, "build")).toEqual(["yarn", "run", "build"]);
  expect(planScript(project, "toString")).toBeNull();
  expect(planTest(project)).toBeNull();
  expect(planTest(facts(["pyproject.toml"]))).toEqual([".venv/bin/python", "-m", "pytest"]);
});

test("a manifest of any shape is read without harm", () => {
  expect(parseManifest("not json")).toBeNull();
  for (const text of [
    "null",
    "[]",
    '"text"',
    '{"scripts":5,"dependencies":"x","packageManager":{}}',
    '{"scripts":{"dev":7}}',
  ]) {
    expect(parseManifest(text)).toMatchObject({ scripts: new Map(), packageManager: null });
  }
});
