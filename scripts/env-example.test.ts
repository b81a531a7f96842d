import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const read = (path: string) => readFileSync(fileURLToPath(new URL(`../${path}`, import.meta.url)), "utf8");
const example = read(".env.example");
const schemas = ["cli/src/input/config.ts", "server/src/config.ts", "gateway/src/settings/settings.ts"]
  .concat("gateway/src/settings/endpoints.ts", "sandbox/src/providers/settings.ts")
  .concat("sandbox/src/providers/modal-settings.ts", "store/src/objects/settings.ts")
  .map((path) => read(`packages/${path}`));
const roles = /modelRoles = \[([^\]]*)\]/.exec(read("packages/contract/src/runs/models.ts"))?.[1] ?? "";
const roleVariables = [...roles.matchAll(/"([a-z0-9-]+)"/g)].map(
  ([, role = ""]) => `SLIPWAY_MODEL_${role.toUpperCase().replace("-", "_")}`,
);
/** The keys of the schemas by which programs read their environment. */
const variables = [
  ...schemas.flatMap((text) => [...text.matchAll(/^ {2}([A-Z][A-Z0-9_]{3,}): /gm)].map(([, name = ""]) => name)),
  ...roleVariables,
];
/** Named after another setting; read by the command line before it reads its settings. */
const others = ["SLIPWAY_KEY_GROQ", "SLIPWAY_DEBUG"];

test(".env.example tells of every variable that a program reads", () => {
  expect(variables.length).toBeGreaterThan(50);
  expect(variables.filter((name) => !new RegExp(`\\b${name}\\b`).test(example))).toEqual([]);
});

test(".env.example sets none that nobody reads", () => {
  const set = [...example.matchAll(/^(?:# )?([A-Z][A-Z0-9_]+)=/gm)].map(([, name = ""]) => name);
  expect(set.filter((name) => !variables.includes(name) && !others.includes(name))).toEqual([]);
});
