import { type Intent, type IntentView, surfaceLines } from "@slipway/contract";
import type { Paint } from "../../../terminal/terminal.ts";
import { oneLine } from "./words.ts";

/** The intent for people. Models wrote most of its texts. */
export function showIntent({ status, intent, hash }: IntentView, paint: Paint): string {
  const lines = [
    `${paint("bold", "Intent")} ${paint("dim", status === "locked" ? `locked, ${hash}` : "open")}`,
    `  ${paint("dim", "app:")} ${oneLine(intent.appType)}. ${oneLine(intent.character)}`,
    `  ${paint("dim", "core value:")} ${oneLine(intent.coreValue)}`,
    ...section("Criteria", criteria(intent), paint),
    ...section("Workflows", workflows(intent, paint), paint),
    ...section("Surface: the names that the app keeps", surface(intent, paint), paint),
    ...section("Identity", identity(intent, paint), paint),
    ...section(
      "To avoid",
      intent.antiPatterns.map((text) => oneLine(text)),
      paint,
    ),
  ];
  return `${lines.join("\n")}\n`;
}

function criteria({ criteria }: Intent): string[] {
  const width = Math.max(...criteria.map(({ id }) => id.length));
  const kinds = Math.max(...criteria.map(({ kind }) => kind.length));
  return criteria.map(({ id, kind, statement }) => `${id.padEnd(width)}  ${kind.padEnd(kinds)}  ${oneLine(statement)}`);
}

function workflows({ workflows }: Intent, paint: Paint): string[] {
  return workflows.flatMap(({ id, title, steps, success }) => [
    `${id}: ${oneLine(title)}`,
    ...steps.map((step, index) => `  ${index + 1}. ${oneLine(step)}`),
    `  ${paint("dim", "success:")} ${oneLine(success)}`,
  ]);
}

function surface({ surface: names }: Intent, paint: Paint): string[] {
  if (names === undefined) return ["none: the intent is of an earlier version"];
  return surfaceLines(names).flatMap(([title, lines]) => [
    paint("dim", `${title.toLowerCase()}:`),
    ...lines.map((line) => `  ${oneLine(line)}`),
  ]);
}

function identity({ identity: { mood, colours, typography, layout } }: Intent, paint: Paint): string[] {
  return [
    `${paint("dim", "mood:")} ${oneLine(mood)}`,
    `${paint("dim", "colours:")} ${colours.map((colour) => oneLine(colour)).join(", ")}`,
    `${paint("dim", "typography:")} ${oneLine(typography)}`,
    `${paint("dim", "layout:")} ${oneLine(layout)}`,
  ];
}

function section(title: string, lines: readonly string[], paint: Paint): string[] {
  return [`  ${paint("bold", title)}`, ...lines.map((line) => `    ${line}`)];
}
