import type { Intent, Surface } from "@slipway/contract";
import { describe, expect, test } from "vitest";
import { draft, request } from "../testing/answers.ts";
import { checkIntent, editIntent, openIntent } from "./decide.ts";

const { surface } = draft;
const [list, one] = surface.pages;
const [entry] = surface.controls;
const [left] = surface.messages;
const [put] = surface.routes;
if (!list || !one || !entry || !left || !put) throw new Error("the surface of the tests is incomplete");

const messagesOn = (part: Partial<Surface>, more: Partial<Intent> = {}) =>
  checkIntent({ ...draft, ...more, surface: { ...surface, ...part } })
    .map(({ message }) => message)
    .join("\n");

const control = (more: object) => ({ controls: [...surface.controls, { ...entry, id: "more", ...more }] });
const message = (more: object) => ({
  messages: [...surface.messages, { ...left, id: "more", text: "All {count} packed", one: null, ...more }],
});
const route = (more: object) => ({ routes: [...surface.routes, { ...put, id: "more", path: "/api/more", ...more }] });
const text = (field: string) => ({ field, type: "text" });

describe("a surface is refused for", () => {
  test.each<[string, string, Partial<Surface>]>([
    ["an id that is used twice", "the id add more than once", { pages: [list, { ...one, id: "add" }] }],
    [
      "two pages at one path",
      "two pages have the path",
      { pages: [list, one, { id: "again", path: "/items/{thing}", purpose: "x" }] },
    ],
    ["no page where a visitor can begin", "no page has a path without variables", { pages: [one] }],
    ["a control on no page", "which the surface does not have", control({ page: "nowhere" })],
    ["two controls of one name on one page", "entry and more are both", control({ name: " item. " })],
    ["a control of that name on every page", "entry and more are both", control({ page: null, name: "ITEM" })],
    [
      "two controls whose names are variables",
      "item and more are both",
      control({ role: "checkbox", name: "{thing}" }),
    ],
    ["two messages that read the same", "two messages are", message({ text: "{number} items left" })],
    ["a message without words", "has no words of its own", message({ text: "{a}: {b}" })],
    [
      "a form for one of nothing that counts",
      "no variable that counts",
      message({ text: "All packed", one: "Packed" }),
    ],
    ["a variable of one form only", "is only in its form for one", message({ one: "{name} packed" })],
    ["two routes of one method and path", "two routes are POST /api/items", route({ path: "/api/items" })],
    [
      "a query with fields in fields",
      "its request goes into the query",
      route({ method: "GET", request: [text("owner.name")] }),
    ],
    ["a value that has fields", "is a value and has fields", route({ request: [text("owner"), text("owner.name")] })],
    [
      "an answer that is a list and an object",
      "says that it is a list",
      route({ response: [text("[].id"), text("total")] }),
    ],
    ["a field that is there twice", "more than once", route({ request: [text("name"), text("name")] })],
    ["letters of two scripts in a word", "mixes Latin and Cyrillic", control({ name: "P\u0430ck" })],
    [
      "a name in letters that the rest is not written in",
      "is in Hebrew letters",
      control({ name: "\u05d4\u05d5\u05e1\u05e3" }),
    ],
  ])("%s", (_, expected, part) => {
    expect(messagesOn(part)).toContain(expected);
  });

  test.each<[string, string, string[]]>([
    ["begins in the middle", "has to begin with a page", ["add", "list"]],
    ["begins at an address that nobody knows", "has to begin with a page", ["one", "list"]],
    ["passes what is not there", "has basket, which the surface does not have", ["list", "basket"]],
    ["uses a control of another page", "uses add of the page list while it is on one", ["list", "one", "add"]],
  ])("a workflow whose walk %s", (_, expected, walk) => {
    const workflows = draft.workflows.map((workflow) => ({ ...workflow, walk }));
    expect(messagesOn({}, { workflows })).toContain(expected);
  });
});

test("names in the language of the request pass, whatever its script", () => {
  const criteria = draft.criteria.map((criterion) => ({
    ...criterion,
    statement: `\u041c\u043e\u0436\u043d\u043e ${criterion.statement}`,
  }));
  expect(messagesOn(control({ name: "\u0414\u043e\u0431\u0430\u0432\u0438\u0442\u044c" }), { criteria })).toBe("");
});

test("what turns text around is no part of a name", () => {
  const open = editIntent(openIntent(request, draft), {
    surface: { ...surface, controls: surface.controls.map((it) => ({ ...it, name: `\u202e${it.name}` })) },
  });
  expect(open.intent.surface).toEqual(surface);
});

test("an edit that takes away what a workflow needs is refused, and nothing is lost", () => {
  const open = openIntent(request, draft);
  const controls = surface.controls.filter(({ id }) => id !== "add");
  expect(() => editIntent(open, { surface: { ...surface, controls } })).toThrow(
    "has add, which the surface does not have",
  );
  expect(open).toEqual(openIntent(request, draft));
  const workflows = draft.workflows.map((workflow) => ({
    ...workflow,
    walk: workflow.walk.filter((id) => id !== "add"),
  }));
  expect(editIntent(open, { surface: { ...surface, controls }, workflows }).intent.surface?.controls).toEqual(controls);
});
