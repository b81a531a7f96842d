import { withFaults } from "../fault.ts";
import type { ScriptedProgram, Turn } from "../program.ts";
import { isSideCall, sideAnswer } from "../side-call.ts";

const program = `import { fileURLToPath } from "node:url";

export function hello(name = "world") {
  return \`Hello, \${name}!\`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log(hello(process.argv[2]));
`;

const test = `import assert from "node:assert/strict";
import { test } from "node:test";
import { hello } from "./hello.mjs";

test("it greets the world", () => assert.equal(hello(), "Hello, world!"));
test("it greets by name", () => assert.equal(hello("Ada"), "Hello, Ada!"));
`;

/** Writes a small program with a test, whatever the request, runs the test, and reports the result. */
export const demo: ScriptedProgram = (request) => (isSideCall(request) ? sideAnswer(request) : work(request));

const work = withFaults(({ step, results }): Turn => {
  switch (step) {
    case 0:
      return {
        text: "I write a small program.",
        actions: [{ write: "hello.mjs", content: program }],
      };
    case 1:
      return {
        text: "Now a test for it.",
        actions: [{ write: "hello.test.mjs", content: test }],
      };
    case 2:
      return {
        text: "I run the test.",
        actions: [{ run: 'node --test hello.test.mjs; echo "tests ended with $?"' }],
      };
    default:
      return { text: results.some(({ text }) => text.includes("tests ended with 0")) ? success : failure };
  }
});

const success = "Done: hello.mjs greets whoever is named on its command line, and its two tests pass.";
const failure = "I wrote hello.mjs and hello.test.mjs, but the tests do not pass here.";
