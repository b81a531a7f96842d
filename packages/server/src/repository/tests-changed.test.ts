import { describe, expect, test } from "vitest";
import type { ChangedFile } from "./changes.ts";
import { testChange } from "./tests-changed.ts";

const changed = (path: string): ChangedFile => ({ path, change: "changed", before: "1", after: "2" });
const moved = (from: string, path: string): ChangedFile => ({ ...changed(path), change: "renamed", from });
const body = 'test("adds", () => {\n  expect(sum(1, 2)).toBe(3);\n});\n';

describe("a test that was moved", () => {
  test.each([
    ["src/a.test.js", "src/a.off.js"],
    ["tests/a.test.js", "tests/a.off.js"],
    ["src/a.test.js", "src/a.test.js.off"],
    ["src/a.test.js", "src/a.test.off.js"],
    ["src/a.test.js", "src/a.test.txt"],
    ["src/a.test.js", "docs/a.md"],
    ["test/a.js", "src/a.js"],
    ["tests/test_a.py", "tests/a.py"],
    ["api/a_test.go", "api/a.go"],
  ])("from %s to %s is no test any more", (from, to) => {
    expect(testChange(moved(from, to), body, body)).toMatchObject({
      ...{ path: from, change: "deleted", movedTo: to, testsRemoved: 1, assertionsRemoved: 1 },
    });
  });

  test.each([
    ["src/a.test.js", "tests/a.test.js"],
    ["src/a.test.js", "src/a.test.ts"],
    ["src/a.spec.tsx", "src/b.test.tsx"],
    ["test/a.js", "test/unit/a.js"],
    ["src/__tests__/a.js", "src/a.test.js"],
    ["tests/test_a.py", "tests/api/test_a.py"],
    ["src/helpers.js", "tests/helpers.js"],
  ])("from %s to %s is there", (from, to) => {
    const none = { testsRemoved: 0, assertionsRemoved: 0 };
    expect(testChange(moved(from, to), body, body)).toMatchObject({ path: from, change: "renamed", ...none });
  });
});

describe("an assertion", () => {
  const removed = (path: string, before: string, after: string) => {
    const { assertionsRemoved, assertionsAdded } = testChange(changed(path), before, after);
    return assertionsRemoved - assertionsAdded;
  };

  test.each([
    ["expect(true).toBe(true);"],
    ["expect(1).toBe(1);"],
    ["expect(!false).toBeTruthy()"],
    ["expect('a').toEqual('a');"],
    ["expect(total).toBe(total);"],
    ["expect([]).toEqual([])"],
    ["assert(true);"],
    ["assert.ok(1);"],
    ['assert.ok(true, "it adds");'],
    ["assert.equal(1, 1);"],
    ["assert.strictEqual(total, total);"],
    ["assertEquals('a', 'a')"],
    ["// expect(sum(1, 2)).toBe(3);"],
    ["sum(1, 2); // expect(sum(1, 2)).toBe(3);"],
    ["/* expect(sum(1, 2)).toBe(3); */"],
    ["/*\nexpect(sum(1, 2)).toBe(3);\n*/"],
  ])("that is %j now asserts nothing", (now) => {
    expect(removed("a.test.js", "expect(sum(1, 2)).toBe(3);\n", `${now}\n`)).toBe(1);
    expect(removed("a.test.js", `${now}\n`, "")).toBe(0);
  });

  test.each([["assert True"], ["assert 1 == 1"], ['assert "fine", "message"'], ["assert total == total"]])(
    "of Python that is %j now asserts nothing",
    (now) => {
      expect(removed("test_a.py", "assert add(1, 2) == 3\n", `${now}\n`)).toBe(1);
    },
  );
  test.each([["pass # assert add(1, 2) == 3"], ['"""\nassert add(1, 2) == 3\n"""'], ["self.assertTrue(True)"]])(
    "of Python that is hidden in %j is gone",
    (now) => {
      expect(removed("test_a.py", "assert add(1, 2) == 3\n", `${now}\n`)).toBe(1);
    },
  );

  test.each([
    ["expect(sum(1, 2)).toBe(4);"],
    ["expect(sum(1, true)).toBe(true);"],
    ["assert.equal(3, sum(1, 2));"],
    ['assert.match("/* no */", pattern);'],
    ['expect(find("src/**")).toEqual([]); expect(sum("*/")).toBe(1);'],
    ["assertEquals(3, total);"],
    ["expect(true).toBe(true); expect(sum(1, 2)).toBe(3.0);"],
  ])("that is %j now is another one", (now) => {
    expect(removed("a.test.js", "expect(sum(1, 2)).toBe(3);\n", `${now}\n`)).toBe(0);
  });

  test("is looked for in time, whatever the file is made of", () => {
    for (const piece of ["/*", "`\\`", '"\\"', "'\\'", '"""', "test.", "test a,", ")a,", "test(a,{"]) {
      const text = piece.repeat(400_000);
      expect(testChange(changed("a.test.js"), "", text).assertionsAdded).toBe(0);
      expect(testChange(changed("test_a.py"), "", text).assertionsAdded).toBe(0);
    }
  });
});

test.each([
  ["a.test.js", "it.todo('adds');"],
  ["a.test.js", "test.concurrent.only('adds', () => {"],
  ["a.test.js", 'test("adds", { todo: "later" }, () => {'],
  ["a.test.js", 'test("adds", { timeout: 10, skip: !process.env.CI }, () => {'],
  ["a.test.js", 'test(\n  "adds",\n  {\n    only: true,\n  },\n  () => {'],
  ["a.test.js", 'test.each([1, 2])("adds %i", { skip: true }, () => {'],
  ["a.test.js", "}, { todo: true });"],
  ["a.test.js", "const off = { skip: true };"],
  ["a.test.js", "t.todo('later');"],
  ["a.test.js", "context.skip();"],
  ["a.test.js", "this.skip();"],
  ["a.test.js", "skip();"],
  ["a.test.js", "skip('not now');"],
  ["a.test.js", "xit('adds', () => {"],
  ["a.test.js", "fit('adds', () => {"],
  ["a_spec.rb", "skip 'not now'"],
  ["a_spec.rb", "it 'adds', skip: 'not now' do"],
  ["test_a.py", "@pytest.mark.skipif(True)"],
  ["test_a.py", "self.skipTest('not now')"],
  ["test_a.py", "@unittest.skip('not now')"],
  ["a.test.js", 'test("adds", { todo: true }, () => {'],
  ["a.test.js", "process.exit(0);"],
  ["a.test.js", "process.exit();"],
  ["a.test.js", "process.exitCode = 0;"],
  ["test_a.py", "@pytest.mark.xfail"],
  ["test_a.py", "@unittest.expectedFailure"],
])("in %s, %j leaves out tests", (path, line) => {
  expect(testChange(changed(path), "", `${line}\n`).skipsAdded).toBe(1);
});

test.each([
  ['const item = { todo: "milk" };'],
  ["const todo: Todo = todos[0];"],
  ["await todo(page);"],
  ['expect(list).toEqual([{ todo: "milk" }]);'],
  ['test("adds", () => expect(add({ todo: "milk" })).toBe(1));'],
  ['test("adds", async () => { await add("milk", { only: "milk", skip: 2 }); });'],
  ['test("adds", { timeout: 10, skip: false }, () => {'],
  ["const page = await find({ skip: 10, take: 5 });"],
  ["expect(list.skip(2)).toEqual([3]);"],
  ["expect(context.list.skip(2)).toEqual([3]);"],
  ["source.pipe(skip(2));"],
  ["player.skip();"],
  ['pick(all, { only: "milk" });'],
  ['expect(page.getByText("skip to content")).toBeVisible();'],
  ['expect(style.objectFit).toBe("fit");'],
  ["const scale = fit(image, box);"],
  ["const { skip, take } = pageOf(request);"],
])("%j is of the app and leaves out no test", (line) => {
  expect(testChange(changed("a.test.js"), "", `${line}\n`).skipsAdded).toBe(0);
});
