import { describe, expect, test } from "vitest";
import type { ChangedFile } from "./changes.ts";
import { emptiedElsewhere, isTest, testChange } from "./tests-changed.ts";

const changed = (path: string): ChangedFile => ({ path, change: "changed", before: "1", after: "2" });
const emptied = (path: string, before: string, after: string) => testChange(changed(path), before, after).emptied;
const js = (...bodies: readonly string[]) =>
  bodies.map((body, index) => `test("adds ${index}", () => {\n  ${body}\n});\n`).join("");
const py = (body: string) => `def test_adds():\n    ${body}\n`;

test.each([
  ["src/a.test.ts", true],
  ["tests/helpers.js", true],
  ["e2e/a.ts", true],
  ["api/a_test.go", true],
  ["src/AppTest.java", true],
  ["tests/test_a.py", true],
  ["src/attest.ts", false],
  ["src/latest.js", false],
])("%s is a test: %j", (path, is) => {
  expect(isTest(path)).toBe(is);
});

describe("a test is empty", () => {
  test.each([
    [""],
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
  ])("that is %j now", (body) => {
    const honest = "expect(sum(1, 2)).toBe(3);";
    expect(emptied("a.test.js", js(honest, honest), js(honest, body))).toBe(1);
    expect(emptied("a.test.js", js(body), js(body))).toBe(0);
  });

  test.each([["pass"], ["assert True"], ["assert 1 == 1"], ['assert "fine", "message"'], ["assert total == total"]])(
    "of Python that is %j now",
    (body) => {
      expect(emptied("test_a.py", py("assert add(1, 2) == 3"), py(body))).toBe(1);
    },
  );
  test.each([["pass # assert add(1, 2) == 3"], ['"""\n    assert add(1, 2) == 3\n    """'], ["self.assertTrue(True)"]])(
    "of Python that hides it in %j",
    (body) => {
      expect(emptied("test_a.py", py("assert add(1, 2) == 3"), py(body))).toBe(1);
    },
  );

  test.each([
    ['test.fails("adds", () => {'],
    ['it.concurrent.failing("adds", () => {'],
    ['test("adds", { fails: true }, () => {'],
    ['test("adds", () => {\n  test.fail();'],
  ])("when it is to fail: %j", (start) => {
    const rest = "\n  expect(sum(1, 2)).toBe(3);\n});\n";
    expect(emptied("a.test.js", `test("adds", () => {${rest}`, start + rest)).toBe(1);
  });
});

describe("no test is empty", () => {
  test.each([
    ["expect(sum(1, 2)).toBe(4);"],
    ["expect(sum(1, true)).toBe(true);"],
    ["assert.equal(3, sum(1, 2));"],
    ['assert.match("/* no */", pattern);'],
    ['expect(find("src/**")).toEqual([]); expect(sum("*/")).toBe(1);'],
    ["assertEquals(3, total);"],
    ["expect(true).toBe(true); expect(sum(1, 2)).toBe(3.0);"],
    ["expectSum(1, 2, 3);"],
    ["await request(app).get('/').expect(200);"],
  ])("that is %j now", (body) => {
    expect(emptied("a.test.js", js("expect(sum(1, 2)).toBe(3);"), js(body))).toBe(0);
  });

  test("where tests are gone, are new or have moved: whether they run is not told by their sources", () => {
    const body = "expect(sum(1, 2)).toBe(3);";
    expect(emptied("a.test.js", js(body, body), js(body))).toBe(0);
    expect(emptied("a.test.js", js(body), js(body, ""))).toBe(0);
    expect(emptied("a.test.js", js(body), "")).toBe(0);
    const moved = { ...changed("b.test.js"), change: "renamed", from: "a.test.js" } as const;
    expect(testChange(moved, js(body), js(body))).toEqual({ path: "a.test.js", change: "renamed", emptied: 0 });
    expect(testChange(moved, js(body), js(""))).toMatchObject({ path: "a.test.js", emptied: 1 });
  });

  test("in a file that only says `test`", () => {
    expect(emptied("a.test.js", "latest(); a.test(1); expect(b);", "latest(); a.test(1);")).toBe(0);
  });
});

describe("of tests that are in another file now, those that assert nothing there count for where they were:", () => {
  const [full, weak] = [js("expect(sum(1, 2)).toBe(3);"), js("")];
  test.each<[string, string, string, object]>([
    ["a new file has them", "", weak, { "a.test.js": 1 }],
    ["one that was there has them", "test('other', () => {});", `test('other', () => {});${weak}`, { "a.test.js": 1 }],
    ["they are whole", "", full, {}],
    ["others are there", "", "test('other', () => {});", {}],
    ["they were there before", weak, weak, {}],
  ])("%s", (_, before, after, expected) => {
    const files = [
      { path: "a.test.js", before: full, after: "" },
      { path: "b.test.js", before, after },
    ];
    expect(Object.fromEntries(emptiedElsewhere(files))).toEqual(expected);
    expect(emptiedElsewhere([{ path: "a.test.js", before: full, after: full }, ...files.slice(1)]).size).toBe(0);
  });

  test("in Python, by their names", () => {
    const files = [
      { path: "test_a.py", before: py("assert add(1, 2) == 3"), after: "" },
      { path: "test_b.py", before: "", after: py("add(1, 2)") },
    ];
    expect([...emptiedElsewhere(files)]).toEqual([["test_a.py", 1]]);
  });
});

test("a file is looked through in time, whatever it is made of", () => {
  for (const piece of [
    "/*",
    "`\\`",
    '"\\"',
    "'\\'",
    '"""',
    "test.",
    "test(",
    "test a,",
    ")a,",
    "test(a,{",
    "expect(",
    "assert ",
  ]) {
    const text = piece.repeat(50_000);
    expect(emptied("a.test.js", text, text)).toBe(0);
    expect(emptied("test_a.py", text, text)).toBe(0);
    expect(emptiedElsewhere([{ path: "a.test.js", before: text, after: text }]).size).toBe(0);
  }
});
