import { expect, test } from "vitest";
import { endOf } from "./layer.ts";

test("of what a program of an image prints, only the end is kept", async () => {
  async function* printed() {
    for (let line = 0; line < 100_000; line++) yield `line ${line}\n`;
  }
  const end = await endOf(printed());
  expect(end).toHaveLength(2000);
  expect(end).toMatch(/line 99998\nline 99999\n$/);
});
