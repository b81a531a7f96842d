import { expect, test } from "vitest";
import { isSource, routesIn } from "./routes.ts";

const named = (text: string) => routesIn(`a.js\u00007:${text}\n`).length === 1;

test.each([
  'app.get("/items", list);',
  "app.post('/items/:id', add)",
  "  const answer = await fetch(`/api/items/$" + "{id}`);",
  'if (request.url === "/api/items" && request.method === "POST") {',
  'if (pathname.startsWith("/total/")) return',
  '    case "/hunt":',
  '@app.route("/items")',
  '@GetMapping("/items")',
  'http.HandleFunc("/items", handle)',
  'mux.Handle("GET /items/{id}", show)',
  '"GET /items": list,',
  'route("GET", "/items", list)',
  '{ method: "get", url: "/items" }',
  '<Route path="/about" element={<About />} />',
  '<form action="/items" method="post">',
  '  "/items/:id",',
  "  '/items' => 'items#list',",
  "const [, id] = /^\\/items\\/(\\d+)$/.exec(path) ?? [];",
  '#[get("/items")]',
])("%s names a route", (text) => {
  expect(named(text)).toBe(true);
});

test.each([
  'import a from "./a.js";',
  'const parts = url.pathname.split("/");',
  '<link rel="stylesheet" href="/style.css">',
  'const comment = get("// no path");',
  "a / b / c",
  `get("/items", "${"x".repeat(500)}")`,
  "",
])("%s names none", (text) => {
  expect(named(text)).toBe(false);
});

test("a route is told with its file and line, and without what a terminal would obey", () => {
  expect(routesIn('src/a b.js\x003:  app.get("/items"); \u001b[2J\nno such line\n')).toEqual([
    'src/a b.js:3: app.get("/items");',
  ]);
});

test("no file and no repository tells more than a prompt takes", () => {
  const lines = (path: string, count: number, text = "") =>
    Array.from({ length: count }, (_, index) => `${path}\u0000${index}:get("/${index}")${text}\n`).join("");
  expect(routesIn(lines("a.js", 1000) + lines("b.js", 1))).toHaveLength(41);
  const many = Array.from({ length: 100 }, (_, index) => lines(`${index}.js`, 10));
  expect(routesIn(many.join(""))).toHaveLength(200);
  const long = Array.from({ length: 100 }, (_, index) => lines(`${index}.js`, 10, "x".repeat(300))).join("");
  expect(routesIn(long).join("\n").length).toBeLessThanOrEqual(15_000);
});

test("tests, what was generated and what is no source are not read", () => {
  const paths = ["server.js", "src/pages/index.tsx", "app/views.py", "public/index.html", "src/testing-ground/a.ts"];
  const others = [
    ...["README.md", "a.test.ts", "a_test.go", "test_a.py", "tests/a.js", "src/__tests__/a.js", "dist/a.js"],
    ...["a.min.js", "a.d.ts", "a.stories.tsx", ".next/a.js", ".venv/lib/a.py", "logo.svg", "data.json"],
  ];
  expect([...paths, ...others].filter(isSource)).toEqual(paths);
});
