import { printable } from "@slipway/contract";

/** The longest name of a pattern. */
const maxCharacters = 256;
const maxEvidence = 4000;
const unknown = "unknown error";

/**
 * What two failures of the same kind have in common: the error's text without what differs from run to run. Lines after
 * the first few mostly say where it happened, and are left out.
 */
export function fingerprint(errorText: string): string {
  const found = printable(errorText)
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("at "))
    .slice(0, 3)
    .join("\n")
    .slice(0, 10 * maxCharacters)
    .replace(/\b[0-9a-f]{7,}\b|\b0x[0-9a-f]+\b/gi, "#")
    .replace(/(?:\/[\w.@-]+){2,}\/([\w.@-]+)/g, "$1")
    .replace(/\d+/g, "#")
    .toLowerCase()
    .slice(0, maxCharacters);
  return found === "" ? unknown : found;
}

const maxBrief = 300;

/** As one short line. */
export function briefly(errorText: string): string {
  const line = printable(errorText).replace(/\s+/g, " ").trim();
  if (line === "") return unknown;
  return (line.length <= maxBrief ? line : `${line.slice(0, maxBrief - 1)}…`).toWellFormed();
}

/** The error in its own words. Of a long one both ends: the cause is mostly in one of them. */
export function evidence(errorText: string): string {
  const told = printable(errorText).trim();
  if (told.length <= maxEvidence) return told === "" ? unknown : told;
  const leftOut = "\n[...]\n";
  const kept = (maxEvidence - leftOut.length) / 2;
  return `${told.slice(0, kept)}${leftOut}${told.slice(-kept)}`.toWellFormed();
}

/** The scope in which fixes are remembered: a project's name means nothing without its owner. */
export function patternScope({ account, project }: { readonly account: string; readonly project: string }): string {
  return `${account}/${project}`.slice(0, 256);
}
