import type { Message } from "@slipway/gateway/scripted";

/** Prompts of the runner's phases, by how they begin. */
const beginnings = {
  build: /^Your task: /,
  fix: /^`[^\n]+` fails (on your work|in a clean checkout)/,
  conflict: /^(Main has moved on, and its changes conflict|These files still have conflict marks)/,
  criteria: /^(Go through the criteria|You have said nothing about these criteria)/,
  findings: /^Checks of your work have found this/,
  more: /^There is more to do on your task/,
} as const;
export type OrderName = keyof typeof beginnings;

export interface Order {
  readonly name: OrderName;
  readonly text: string;
  /** Counts orders of the same kind in the conversation, from 1. */
  readonly number: number;
  /** The results of each finished turn since then. */
  readonly turns: readonly (readonly string[])[];
}

/**
 * Returns the last order of a conversation and what was done for it. Other words of the user, such as news of the
 * build, come in between and change nothing.
 */
export function lastOrder(messages: readonly Message[]): Order | undefined {
  const orders = messages.flatMap((message, index) => ordersIn(message).map((order) => ({ ...order, index })));
  const last = orders.at(-1);
  if (last === undefined) return undefined;
  const number = orders.filter(({ name }) => name === last.name).length;
  return { name: last.name, text: last.text, number, turns: finishedTurns(messages.slice(last.index)) };
}

/** Returns the task, wherever in the conversation it was given. */
export function givenTask(messages: readonly Message[]): { title: string; isFirstTry: boolean } | undefined {
  const text = messages.flatMap(ordersIn).find(({ name }) => name === "build")?.text;
  if (text === undefined) return undefined;
  const [title = ""] = text.slice("Your task: ".length).split("\n", 1);
  return { title, isFirstTry: !text.includes("What earlier attempts ended with:") };
}

function ordersIn({ role, parts }: Message): { name: OrderName; text: string }[] {
  if (role !== "user") return [];
  return parts.flatMap((part) => {
    if (part.type !== "text") return [];
    const text = part.text.trim();
    const [name] = Object.entries(beginnings).find(([, beginning]) => beginning.test(text)) ?? [];
    return name === undefined ? [] : [{ name: name as OrderName, text }];
  });
}

/** A call interrupted by a restart, to be repeated. */
const interrupted = /^\[(interrupted|Request interrupted)/;

function finishedTurns(messages: readonly Message[]): string[][] {
  const results = new Map(
    messages.flatMap(({ parts }) =>
      parts.flatMap((part) => (part.type === "tool_result" ? [[part.id, part.text]] : [])),
    ),
  );
  return messages.flatMap(({ role, parts }) => {
    const calls = role === "assistant" ? parts.filter((part) => part.type === "tool_call") : [];
    const texts = calls.map(({ id }) => results.get(id));
    const isFinished = calls.length > 0 && texts.every((text) => text !== undefined && !interrupted.test(text));
    return isFinished ? [texts.map((text) => text ?? "")] : [];
  });
}
