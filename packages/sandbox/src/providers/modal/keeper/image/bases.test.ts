import { customImageSchema } from "@slipway/contract";
import { expect, test } from "vitest";
import { recipeOf } from "./bases.ts";

test.each([
  ["default", "node:24-bookworm"],
  ["node20", "node:20-bookworm"],
  ["debian", "debian:bookworm"],
] as const)("%s starts from %s, with nothing to do", (image, from) => {
  expect(recipeOf(image)).toEqual({ from, steps: [] });
});

test("host is refused, with what there is", () => {
  expect(() => recipeOf("host")).toThrow(expect.objectContaining({ code: "unknown_image" }));
  expect(() => recipeOf(customImageSchema.parse({ base: "host", apt: ["git"] }))).toThrow(/default, debian, node20/);
});

test("packages come before commands, and no text of a command can begin a step of its own", () => {
  const command = 'echo "one"\nRUN two \\\nthree';
  const image = customImageSchema.parse({ apt: ["jq"], npm: ["left-pad@1"], pip: ["six"], commands: [command] });
  const { steps } = recipeOf(image);
  expect(steps.every((step) => /^RUN \["\/bin\/sh","-c",.*\]$/.test(step))).toBe(true);
  expect(JSON.parse(steps.at(-1)?.slice(4) ?? "")).toEqual(["/bin/sh", "-c", command]);
  expect(steps.join("\n")).toMatch(/apt-get install[^\n]*'jq'[\s\S]*'six'[\s\S]*'left-pad@1'[\s\S]*one/);
});

test("Debian with packages of npm has a Node of its own", () => {
  expect(recipeOf(customImageSchema.parse({ base: "debian", npm: ["x"] })).from).toBe("node:24-bookworm");
});
