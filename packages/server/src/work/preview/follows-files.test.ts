import { expect, test } from "vitest";
import { followsFiles } from "./follows-files.ts";

test.each([
  ["vite", true],
  ["vite --open", true],
  ["PORT=1 npx vite dev", true],
  ["next dev --turbo", true],
  ["node --watch server.js", true],
  ["tsx watch src/main.ts", true],
  ["vite build", false],
  ["vite preview", false],
  ["vitest", false],
  ["node server.js", false],
  ["vite & node api.js", false],
  ["npm run build && vite", false],
  ["concurrently vite 'node api.js'", false],
])("a dev server that is %j follows its files: %s", (dev, follows) => {
  expect(followsFiles(JSON.stringify({ scripts: { dev } }))).toBe(follows);
});

test("the script that is run is the one that counts", () => {
  expect(followsFiles(JSON.stringify({ scripts: { start: "node server.js", serve: "vite" } }))).toBe(false);
});

test("files without a script are served as they are", () => {
  expect(followsFiles(null)).toBe(true);
  expect(followsFiles("{{{")).toBe(true);
  expect(followsFiles(JSON.stringify({ devDependencies: { vite: "5.4.19" } }))).toBe(true);
});
