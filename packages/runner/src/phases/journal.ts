import type { z } from "zod";

/** Does a step's work once and returns its result. After a restart, returns the recorded result. */
export type Once = <T>(step: string, schema: z.ZodType<T>, work: () => Promise<T>) => Promise<T>;

/** The finished steps of a task run, with their results. `record` resolves when the entry is on disk. */
export function createJournal(
  entries: Readonly<Record<string, unknown>>,
  record: (step: string, result: unknown) => Promise<void>,
): Once {
  const known = new Map(Object.entries(entries));
  return async (step, schema, work) => {
    if (known.has(step)) return schema.parse(known.get(step));
    const result = await work();
    known.set(step, result);
    await record(step, result);
    return result;
  };
}
