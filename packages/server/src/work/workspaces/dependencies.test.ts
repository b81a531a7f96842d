import { describe, expect, test } from "vitest";
import { type Dependencies, haveSameInstall, planDependencies, tellsInstall } from "./dependencies.ts";

type Files = Readonly<Record<string, string | object>>;

function plan(files: Files): Dependencies {
  const texts = Object.entries(files).map(([path, content]) => {
    return [path, Buffer.from(typeof content === "string" ? content : JSON.stringify(content))] as const;
  });
  const names = new Set(texts.map(([path]) => path.split("/")[0] ?? ""));
  return planDependencies(names, new Map(texts.filter(([path]) => tellsInstall(path))));
}

const keyOf = (files: Files) => (plan(files) as { key?: string }).key;
const express = { dependencies: { express: "5.1.0" } };

describe("what an install depends on", () => {
  test.each<[string, Files, object]>([
    ["no manifest", { "index.html": "" }, { kind: "none" }],
    ["a manifest that names nothing", { "package.json": { scripts: { dev: "node ." } } }, { kind: "none" }],
    ["names", { "package.json": express }, { kind: "named", install: ["npm", "install"], ownScripts: false }],
    ["a lock file", { "package.json": express, "package-lock.json": "{}" }, { kind: "named", install: ["npm", "ci"] }],
    ["only optional names", { "package.json": { optionalDependencies: { a: "1" } } }, { kind: "named" }],
    ["workspaces", { "package.json": { workspaces: ["a"] }, "a/package.json": {} }, { kind: "named" }],
    [
      "a linked package",
      { "package.json": { dependencies: { a: "file:./a" } }, "a/package.json": {} },
      { kind: "named" },
    ],
    ["a range with a tilde", { "package.json": { dependencies: { a: "~1.2.3" } } }, { kind: "named" }],
    ["an archive", { "package.json": { dependencies: { a: "file:a.tgz" } }, "a.tgz": "" }, { kind: "unknown" }],
    ["a path out of the project", { "package.json": { dependencies: { a: "../../a" } } }, { kind: "unknown" }],
    [
      "an own script",
      { "package.json": { ...express, scripts: { prepare: "x" } } },
      { kind: "named", ownScripts: true },
    ],
    [
      "a script of a part",
      { "package.json": express, "a/package.json": { scripts: { install: "x" } } },
      { ownScripts: true },
    ],
    ["a native part", { "package.json": {}, "binding.gyp": "{}" }, { kind: "named", ownScripts: true }],
    ["another package manager", { "package.json": express, "pnpm-lock.yaml": "" }, { kind: "unknown" }],
    [
      "settings of where packages come from",
      {
        "package.json": express,
        ".npmrc": "; ours\n@a:registry = https://a.example\n//a.example/:_authToken=x\nengine-strict\n",
      },
      { kind: "named" },
    ],
    ...[
      "git=./git",
      "audit=false\rgit=./git",
      "node-options=--require=./a.cjs",
      "global=true",
      "prefix=/usr/local",
      '"git"=./git',
    ].map((npmrc): [string, Files, object] => [
      npmrc,
      { "package.json": express, ".npmrc": npmrc },
      { kind: "unknown" },
    ]),
    ["Python", { "requirements.txt": "flask" }, { kind: "unknown" }],
    ["two languages", { "package.json": express, "requirements.txt": "flask" }, { kind: "unknown" }],
  ])("%s", (_, files, expected) => {
    expect(plan(files)).toMatchObject(expected);
  });

  test("a manifest that can not be read is the commit's own fault", () => {
    expect(() => plan({ "package.json": "{{" })).toThrow(expect.objectContaining({ code: "install_failed" }));
  });

  test("a manifest of a part that can not be read names nothing", () => {
    expect(plan({ "package.json": express, "fixtures/package.json": "{{" })).toMatchObject({ kind: "named" });
  });
});

describe("the key of an install", () => {
  const files = { "package.json": express, "package-lock.json": "{}", ".npmrc": "" };

  test("is another one when any file that tells it is", () => {
    const keys = [
      files,
      { ...files, "package.json": { dependencies: { express: "5.1.1" } } },
      { ...files, "package-lock.json": "{ }" },
      { ...files, ".npmrc": "omit=optional" },
      { ...files, "a/package.json": {} },
    ].map(keyOf);
    expect(new Set(keys).size).toBe(keys.length);
  });

  test("is the same whatever else there is, in whatever order", () => {
    const reversed = Object.fromEntries(Object.entries(files).toReversed());
    const more = { ...reversed, "src/main.js": "x", "node_modules/a/package.json": "{}" };
    expect(keyOf(more)).toBe(keyOf(files));
  });

  test("does not take the end of one file for the beginning of the next", () => {
    expect(keyOf({ "package.json": express, "package-lock.json": "a#", ".npmrc": "#c" })).not.toBe(
      keyOf({ "package.json": express, "package-lock.json": "a", ".npmrc": "##c" }),
    );
  });
});

test("an install serves another commit when the same files tell it, and no script of the project has a part in it", () => {
  const [none, named] = [plan({ "a.txt": "" }), plan({ "package.json": express })];
  const scripted = plan({ "package.json": { ...express, scripts: { prepare: "x" } } });
  const unknown = plan({ "requirements.txt": "" });
  expect(haveSameInstall(none, none)).toBe(true);
  expect(haveSameInstall(named, plan({ "package.json": express, "b.txt": "" }))).toBe(true);
  for (const [one, other] of [
    [none, named],
    [named, none],
    [scripted, scripted],
    [unknown, unknown],
  ] as const) {
    expect(haveSameInstall(one, other)).toBe(false);
  }
});
