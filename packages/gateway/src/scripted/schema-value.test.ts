import { describe, expect, test } from "vitest";
import { z } from "zod";
import { valueForSchema } from "./schema-value.ts";

describe("the plainest value of a schema", () => {
  test.each([
    ["a title", z.object({ title: z.string() })],
    ["bounds", z.object({ text: z.string().min(40).max(60), count: z.int().min(3).max(9), share: z.number().gt(0.5) })],
    [
      "lists",
      z.object({ list: z.array(z.object({ id: z.string() })).min(5), pair: z.tuple([z.string(), z.boolean()]) }),
    ],
    [
      "choices",
      z.object({ risk: z.enum(["low", "high"]), kind: z.literal("x"), either: z.union([z.null(), z.string()]) }),
    ],
    [
      "unions",
      z.discriminatedUnion("type", [
        z.object({ type: z.literal("a"), a: z.string() }),
        z.object({ type: z.literal("b") }),
      ]),
    ],
    ["formats", z.object({ at: z.iso.datetime(), day: z.iso.date(), id: z.uuid(), mail: z.email(), link: z.url() })],
    ["maps", z.record(z.string(), z.string())],
    ["short strings", z.string().max(4)],
  ])("fits: %s", (_, schema) => {
    const { pattern: _pattern, ...jsonSchema } = z.toJSONSchema(schema);
    expect(schema.safeParse(valueForSchema(jsonSchema))).toMatchObject({ success: true });
  });

  test("follows references", () => {
    const task = z.object({ title: z.string() }).meta({ id: "task" });
    const plan = z.object({ first: task, second: task });
    expect(plan.safeParse(valueForSchema(z.toJSONSchema(plan))).success).toBe(true);
  });

  test("a schema that refers to itself, or to nothing, has an end", () => {
    expect(valueForSchema({ $ref: "#" })).toBeNull();
    expect(valueForSchema({ $ref: "https://example.com/schema" })).toBeNull();
  });

  test("a schema that branches without end has one", () => {
    const twice = { type: "object", required: ["a", "b"], properties: { a: { $ref: "#" }, b: { $ref: "#" } } };
    expect(JSON.stringify(valueForSchema(twice)).length).toBeLessThan(1_000_000);
  });

  test("a huge minimum makes no huge value", () => {
    const { items } = valueForSchema({
      type: "object",
      required: ["items"],
      properties: { items: { type: "array", minItems: 1e9, items: { type: "null" } } },
    }) as { items: unknown[] };
    expect(items).toHaveLength(100);
  });
});
