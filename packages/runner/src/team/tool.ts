import { z } from "zod";
import type { TeamTool } from "../agents/driver.ts";
import { keepEndsOf } from "../system/output.ts";

const maxAnswerBytes = 64 * 1024;

/** Tells the model what is wrong with an input that does not fit the schema. */
export function defineTeamTool<S extends z.ZodType>(
  name: string,
  description: string,
  schema: S,
  run: (input: z.output<S>) => string | Promise<string>,
): TeamTool {
  return {
    name,
    description,
    schema: z.toJSONSchema(schema, { io: "input" }),
    async run(input) {
      const parsed = schema.safeParse(input);
      if (!parsed.success) throw new Error(z.prettifyError(parsed.error));
      return keepEndsOf(await run(parsed.data), maxAnswerBytes);
    },
  };
}
