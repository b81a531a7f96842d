import { expect, test } from "vitest";
import { z } from "zod";
import { absolutePath, decimalNumber, readEnvironment, wholeNumber } from "./settings.ts";

const schema = z.object({
  PLACE: absolutePath.optional(),
  COUNT: wholeNumber(1, 9).default(3),
  SHARE: decimalNumber(0, 1).optional(),
});

test("settings are read with their defaults, and an empty variable is not set", () => {
  const { settings, given, mistakes } = readEnvironment(schema, {
    PLACE: "/a",
    COUNT: "",
    OTHER: "x",
    NONE: undefined,
  });
  expect(settings).toEqual({ PLACE: "/a", COUNT: 3 });
  expect(given).toEqual({ PLACE: "/a", OTHER: "x" });
  expect(mistakes).toEqual([]);
});

test("every invalid setting is reported with its variable, and valid ones are still read", () => {
  const { settings, mistakes } = readEnvironment(schema, { PLACE: "/proc/a", COUNT: "10", SHARE: "0.5" });
  expect(settings).toEqual({ COUNT: 3, SHARE: 0.5 });
  expect(mistakes).toEqual([
    'PLACE: no files can be kept in "/proc/a".',
    'COUNT: "10" is not a whole number from 1 to 9.',
  ]);
  expect(readEnvironment(schema, { PLACE: "a", SHARE: "1e-3" }).mistakes).toEqual([
    'PLACE: "a" is not an absolute path.',
    'SHARE: "1e-3" is not a number from 0 to 1.',
  ]);
});
