import type { z } from "zod";

/** The steps of a task run that are done, and what came of them. A runner that goes on repeats none. */
export interface Journal {
  /** What the step's work answers. After a restart: what it has answered. */
  once<T>(step: string, schema: z.ZodType<T>, work: () => Promise<T>): Promise<T>;
}

export interface JournalOptions {
  readonly entries: Readonly<Record<string, unknown>>;
  /** Answers when the entry is on disk. */
  record(step: string, result: unknown): Promise<void>;
}

export function createJournal({ entries, record }: JournalOptions): Journal {
  const known = new Map(Object.entries(entries));
  return {
    async once(step, schema, work) {
      if (known.has(step)) return schema.parse(known.get(step));
      const result = await work();
      known.set(step, result);
      await record(step, result);
      return result;
    },
  };
}
