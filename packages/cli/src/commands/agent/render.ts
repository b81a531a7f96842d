import { type AgentEvent, endText, type NumberedEvent, printable, type RunnerEvent } from "@slipway/contract";
import type { Paint } from "../../terminal/terminal.ts";
import { harmless } from "../../terminal/terminal.ts";

/** Formats a run's events for people. All text comes from a sandbox. */
export function createRenderer(paint: Paint): (event: NumberedEvent) => string {
  /** The agent whose text is on the unfinished line. */
  let speaking: string | undefined;
  const breakLine = () => {
    const text = speaking === undefined ? "" : "\n";
    speaking = undefined;
    return text;
  };
  const say = (agent: string, text: string) => {
    const begin = speaking === agent ? "" : `${breakLine()}${label(agent, paint)}`;
    speaking = agent;
    return `${begin}${printable(text)}`;
  };
  return ({ event }) => {
    if (event.type === "agent" && event.event.type === "text") {
      return event.event.channel === "answer" ? say(event.agent, event.event.text) : "";
    }
    const line = lineOf(event, paint);
    return line === undefined ? "" : `${breakLine()}${line}\n`;
  };
}

function lineOf(event: RunnerEvent, paint: Paint): string | undefined {
  switch (event.type) {
    case "agent": {
      const line = agentLine(event.event, paint);
      return line === undefined ? undefined : `${label(event.agent, paint)}${line}`;
    }
    case "task":
      return `${paint("cyan", "task")} ${event.task.id} ${event.task.status}: ${harmless(event.task.title)}${event.task.owner ? paint("dim", ` (${harmless(event.task.owner)})`) : ""}`;
    case "note":
      return `${label(event.agent, paint)}${paint("cyan", "note")} ${harmless(event.text)}`;
    case "resumed":
      return paint("yellow", `runner restarted; continues after step ${event.step}`);
    case "phase":
      return `${paint("cyan", "phase")} ${event.phase} ${event.status}`;
    case "command":
      return `${paint("cyan", event.command)} ${event.ok ? "passed" : paint("red", "failed")}`;
    case "committed":
    case "criterion":
    case "claim":
    case "told":
    case "offered":
    case "ended":
      return undefined;
  }
}

function agentLine(event: AgentEvent, paint: Paint): string | undefined {
  switch (event.type) {
    case "tool":
      if (event.phase === "start")
        return `${paint("cyan", harmless(event.name))} ${shorten(gistOf(event.input ?? ""))}`;
      return event.ok === false ? `${paint("red", "failed")} ${shorten(event.output ?? "")}` : undefined;
    case "file_change":
      return `${paint("green", event.action)} ${harmless(event.path)}`;
    case "plan":
      return event.entries
        .map(
          ({ text, status }) => `${{ completed: "[x]", in_progress: "[>]", pending: "[ ]" }[status]} ${harmless(text)}`,
        )
        .join("\n");
    case "permission":
      return `${paint("yellow", "asks to use")} ${harmless(event.tool)} ${shorten(gistOf(event.input))}`;
    case "status":
      return ["retrying", "compacting", "interrupted"].includes(event.status)
        ? paint("yellow", `${event.status}${event.detail ? `: ${harmless(event.detail)}` : ""}`)
        : undefined;
    case "ended":
      return event.end.reason === "completed" ? undefined : paint("red", harmless(endText(event.end)));
    case "session":
    case "text":
    case "usage":
      return undefined;
  }
}

function label(agent: string, paint: Paint): string {
  return agent === "lead" ? "" : paint("dim", `${harmless(agent)}  `);
}

const shownCharacters = 160;

function shorten(text: string): string {
  const line = harmless(text.replaceAll(/\s+/g, " "));
  return line.length > shownCharacters ? `${line.slice(0, shownCharacters)} …` : line;
}

/** Agents' names for the most telling field of a tool's input. */
const tellingFields = ["command", "cmd", "file_path", "filePath", "path", "paths", "pattern", "query", "text", "title"];

/** The most telling field of JSON; anything else unchanged. */
function gistOf(input: string): string {
  const value = parsed(input);
  const { files, tasks } = fieldsOf(value);
  const many = Array.isArray(files) ? files : Array.isArray(tasks) ? tasks : [value];
  const gists = many.map(tellingField);
  return gists.includes(undefined) ? input : gists.join(", ");
}

/** Nested values may be hostile: never search them or convert them to text. */
function tellingField(value: unknown): string | undefined {
  const fields = fieldsOf(value);
  for (const name of tellingFields) {
    const told = fields[name];
    if (typeof told === "string") return told;
    if (Array.isArray(told)) return told.filter((word) => typeof word === "string").join(" ");
  }
  return undefined;
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
