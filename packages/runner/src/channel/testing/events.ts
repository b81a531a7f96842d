import type { RunnerEvent } from "@slipway/contract";

export function note(text: string): RunnerEvent {
  return { type: "note", agent: "lead", text };
}

export function text(delta: string, agent = "lead", channel: "answer" | "thinking" = "answer"): RunnerEvent {
  return { type: "agent", agent, event: { type: "text", channel, text: delta } };
}

export const ended: RunnerEvent = { type: "ended", end: { reason: "completed", message: "done" } };
