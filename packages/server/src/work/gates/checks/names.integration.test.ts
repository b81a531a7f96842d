import { devServerPort, type OwnedSandbox, startDevServer } from "@slipway/sandbox";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { openWorld, type WorldWith } from "../../../testing/world.ts";
import { type Checker, openChecker } from "../checker.ts";
import type { Step, Target } from "./browser-job.ts";

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

/** Answers `/<html>` with that HTML. */
const echo = `import { createServer } from "node:http";
createServer(({ url }, response) => {
  response.setHeader("content-type", "text/html; charset=utf-8");
  response.end("<!doctype html><title>Echo</title><body>" + decodeURIComponent(url.slice(1)));
}).listen(Number(process.env.PORT), "127.0.0.1");
`;

let site: WorldWith<"gates">;
let running: OwnedSandbox;
let checker: Checker;
beforeAll(async () => {
  const manifest = { name: "echo", type: "module", scripts: { dev: "node server.js" } };
  site = await openWorld({
    sandboxes: "local",
    repository: { "package.json": JSON.stringify(manifest), "server.js": echo },
    gates: {},
  });
  running = await site.parts.workspaces.open(site.build, site.main, { purpose: "gate" });
  const { signal } = new AbortController();
  await startDevServer(running, { signal });
  const connect = () => running.connect(devServerPort, { signal });
  checker = await openChecker({ provider: site.provider, labels: {}, connect, signal });
});
afterAll(async () => {
  await checker[Symbol.asyncDispose]();
  await running[Symbol.asyncDispose]();
  await site[Symbol.asyncDispose]();
});

const visit = (...steps: Step[]) => checker.check({ type: "visit", viewport: "desktop", steps });
const open = (html: string): Step => ({ action: "open", path: `/${encodeURIComponent(html)}` });
const see = (role: Target["role"], ...names: string[]): Step => ({ action: "see", target: { role, names } });

test.each<[string, string, Step]>([
  ["case", "<button>ADD ITEM</button>", see("button", "Add item")],
  ["spaces", "<button>Add \n  item</button>", see("button", "Add item")],
  ["marks at the end", "<p>All done!</p>", see("text", "All done.")],
  ["marks that only the surface has", "<p>All done</p>", see("text", "All done!")],
  ["a count in words", "<p>Three items left</p>", see("text", "3 items left")],
  ["a count in digits", "<p>3 items left</p>", see("text", "three items left")],
  ["none for zero", "<p>No items left</p>", see("text", "0 items left")],
  ["a name that contains the words", "<button>Add item to the list</button>", see("button", "Add item")],
  [
    "the first visible of several",
    "<button hidden>Add</button><button>Add</button><button>Add</button>",
    see("button", "Add"),
  ],
  ["a text in elements of its own", "<p><b>3</b><span>items</span> <i>left</i></p>", see("text", "3 items left")],
  ["what a field shows", "<input aria-label=Name value='2 kg figs'>", see("text", "2 kg")],
  ["either form", "<p>1 item left</p>", see("text", "1 item left", "1 items left")],
  [
    "what is in a shadow tree",
    "<x-a><template shadowrootmode=open><button>Add</button></template></x-a>",
    see("button", "Add"),
  ],
])("%s makes no difference", async (_, html, step) => {
  expect(await visit(open(html), step)).toEqual({ type: "passed" });
});

test.each<[string, string, Target["role"], string]>([
  [
    "a list of the browser's own",
    "<select aria-label=Level onchange='out.textContent=value'><option>low<option>urgent</select>",
    "combobox",
    "Level",
  ],
  [
    "a radio",
    "<label><input type=radio name=level onchange='out.textContent=\"urgent\"'>Urgent</label>",
    "radio",
    "Urgent",
  ],
])("a visitor chooses from %s", async (_, html, role, name) => {
  const choose: Step = { action: "choose", target: { role, names: [name] }, value: "Urgent" };
  expect(await visit(open(`${html}<p id=out>`), choose, see("text", "urgent"))).toEqual({ type: "passed" });
});

test("a key that no keyboard has, and a page that changes what arrays do, are what the check says of the app", async () => {
  const press: Step = { action: "press", key: "Ctrl+K" };
  expect(await visit(open("<p>x"), press)).toMatchObject({ type: "failed", step: 1, why: "refused" });
  const html = "<input aria-label=Name value=figs><script>Array.prototype.map = () => 5;</script>";
  expect(await visit(open(html), see("text", "plums"))).toMatchObject({ type: "failed", why: "missing" });
});

test("an exact name wins over one that contains it", async () => {
  const html = `<button onclick="out.textContent='wrong'">Add more</button><button onclick="out.textContent='right'">Add</button><p id=out>`;
  const click: Step = { action: "click", target: { role: "button", names: ["add"] } };
  expect(await visit(open(html), click, see("text", "right"))).toEqual({ type: "passed" });
});

test("other words, other counts and parts of words are not the same, and neither is what the visitor has typed", async () => {
  const html = "<button>Append</button><p>13 items left, Milkshake, 1.2 kg</p><input aria-label=Entry>";
  const wrong = [
    see("button", "Add"),
    see("text", "3 items left"),
    see("text", "Milk"),
    see("text", "2 kg"),
    see("text", "typed"),
  ];
  const type: Step = { action: "fill", target: { role: "textbox", names: ["Entry"] }, value: "typed" };
  for (const step of wrong) {
    expect(await visit(open(html), type, step)).toMatchObject({ type: "failed", step: 2, why: "missing" });
  }
});

test("visitors have cookies of their own, and find the address where another one is", async () => {
  const seen =
    '<p id=out></p><script>out.textContent = document.cookie || "nobody"; document.cookie = "who=me";</script>';
  const pattern: Step = { action: "open", path: "/{page}" };
  const answer = await visit(
    open(seen),
    see("text", "nobody"),
    { action: "reload" },
    see("text", "who=me"),
    { action: "switch", visitor: 2 },
    pattern,
    see("text", "nobody"),
    { action: "switch", visitor: 1 },
    see("text", "who=me"),
  );
  expect(answer).toEqual({ type: "passed" });
  const lost = await visit(open("x"), { action: "open", path: "/rooms/{room}" });
  expect(lost).toMatchObject({
    type: "failed",
    step: 1,
    why: "unopened",
    detail: expect.stringContaining("but at /x"),
  });
});
