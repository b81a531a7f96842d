import { expect, test } from "vitest";
import { parsePlace, placeDirectory, placeText } from "./places.ts";

test.each([
  ["my-app", "workspaces/my-app"],
  ["projects/Ann_1/shop", "projects/Ann_1/shop"],
  ["shared", "shared"],
])("%s is kept in %s", (text, directory) => {
  const place = parsePlace(text);
  expect(place.kind === "s3" ? "" : placeDirectory(place)).toBe(directory);
  expect(placeText(place)).toBe(text);
});

test.each([
  ["s3://my-bucket", { bucket: "my-bucket", prefix: "" }],
  ["s3://my-bucket/a b/c/", { bucket: "my-bucket", prefix: "a b/c" }],
])("%s is a place in a bucket", (text, expected) => {
  expect(parsePlace(text)).toEqual({ kind: "s3", ...expected });
  expect(parsePlace(placeText(parsePlace(text)))).toEqual({ kind: "s3", ...expected });
});

test.each([
  "",
  "..",
  ".",
  "a/b",
  "/a",
  "projects",
  "projects/ann",
  "projects/../shop",
  "projects/ann/..",
  "projects/ann/shop/x",
  "projects/ann/",
  "projects//shop",
  "a\n",
  "a b",
  "ä",
  "x".repeat(65),
  "s3://",
  "s3://B/x",
  "s3://bucket/a/../b",
  "s3://bucket/a//b",
  "s3://../x",
])("%j is refused", (text) => {
  expect(() => parsePlace(text)).toThrow(expect.objectContaining({ code: "invalid_request" }));
});
