import { newId } from "@slipway/contract";
import { expect, test } from "vitest";
import { generatedIntent } from "../simulated/generated.ts";
import { drafted } from "./intents.ts";

const build = { id: newId("bld"), account: "ada", project: "shop", mode: "feature", request: "A shop" } as const;
const open = generatedIntent(build);
const earlier = { files: ["a.js"], notes: "A shop" };

test("a build that was drafted before apps were looked at is still read", () => {
  const repository = { ...earlier, routes: [], pages: [], unseen: null };
  expect(drafted.parse({ open, start: { mode: "feature", repository: earlier } }).start).toEqual({
    mode: "feature",
    repository,
  });
  const diagnosis = { problems: [] };
  expect(drafted.parse({ open, start: { mode: "fix", repository: earlier, diagnosis } }).start).toEqual({
    mode: "fix",
    repository,
    diagnosis,
  });
});

test("what was seen of an app is kept as it was", () => {
  const pages = [{ path: "/", leadsTo: "/items", shows: '- button "Add"' }];
  const start = {
    mode: "feature",
    repository: { ...earlier, routes: ["a.js:1: /"], pages, unseen: "There are more." },
  };
  expect(drafted.parse({ open, start }).start).toEqual(start);
});
