import { z } from "zod";
import type { OpenOptions } from "../driver.ts";

/** The conversation that an agent's next turn continues. */
export interface SessionState {
  readonly id: string | undefined;
  /** Resolves when it is on disk. Undefined: the next turn starts a conversation. */
  keep(id: string | undefined): Promise<void>;
}

export function sessionState(
  { state, save }: Pick<OpenOptions, "state" | "save">,
  idSchema: z.ZodType<string>,
): SessionState {
  let id = z.object({ session: idSchema }).safeParse(state).data?.session;
  return {
    get id() {
      return id;
    },
    async keep(next) {
      if (next === id) return;
      id = next;
      await save(next === undefined ? undefined : { session: next });
    },
  };
}
