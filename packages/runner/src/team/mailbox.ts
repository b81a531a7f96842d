import { once } from "node:events";
import { z } from "zod";

/** The user's words that no agent has taken, the context for all agents, and whether all wait for the user. */
export const mailSchema = z.strictObject({
  letters: z.array(z.strictObject({ agent: z.string(), text: z.string(), wakes: z.boolean() })),
  context: z.array(z.string()),
  isInterrupted: z.boolean(),
});
type Mail = z.output<typeof mailSchema>;

export interface Mailbox {
  readonly context: readonly string[];
  readonly isInterrupted: boolean;
  /** Adds a letter for an agent's next turn. A letter that `wakes` is reason enough for a turn. */
  put(agent: string, text: string, options: { readonly wakes: boolean }): void;
  addContext(text: string): void;
  interrupt(): void;
  resume(): void;
  isWanted(agent: string): boolean;
  /** Removes and returns all letters for the agent. */
  take(agent: string): string[];
  /** Resolves when there is reason for a turn. */
  wanted(agent: string, signal: AbortSignal): Promise<void>;
  state(): Mail;
}

/** Limits of what is kept. Older entries make room. */
const maxLetters = 100;
const maxContexts = 32;

export function createMailbox(found: Mail | undefined, onChange: () => void): Mailbox {
  let { letters, context, isInterrupted } = found ?? { letters: [], context: [], isInterrupted: false };
  const arrivals = new EventTarget();
  const isWanted = (agent: string) => letters.some((letter) => letter.agent === agent && letter.wakes);
  return {
    get context() {
      return context;
    },
    get isInterrupted() {
      return isInterrupted;
    },
    put(agent, text, { wakes }) {
      letters = [...letters, { agent, text, wakes }].slice(-maxLetters);
      onChange();
      arrivals.dispatchEvent(new Event("letter"));
    },
    addContext(text) {
      context = [...context, text].slice(-maxContexts);
      onChange();
    },
    interrupt() {
      isInterrupted = true;
      onChange();
    },
    resume() {
      isInterrupted = false;
      onChange();
    },
    isWanted,
    take(agent) {
      const taken = letters.filter((letter) => letter.agent === agent);
      letters = letters.filter((letter) => letter.agent !== agent);
      if (taken.length > 0) onChange();
      return taken.map((letter) => letter.text);
    },
    async wanted(agent, signal) {
      while (!isWanted(agent) && !signal.aborted) await once(arrivals, "letter", { signal }).catch(() => {});
    },
    state: () => ({ letters, context, isInterrupted }),
  };
}
