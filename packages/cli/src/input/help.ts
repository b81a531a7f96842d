import type { Paint } from "../terminal/terminal.ts";
import { globalOptions } from "./arguments.ts";
import type { Command, CommandGroup, OptionSpecs } from "./command.ts";

/** `slipway` alone: the commands, and how to try them. */
export function welcome(groups: readonly CommandGroup[], paint: Paint): string {
  const lines = [
    paint("bold", "Slipway turns a request into a running, verified app. Coding agents work in isolated sandboxes."),
    "",
  ];
  for (const { title, commands } of groups) {
    const top = commands.filter(({ name }) => !name.includes(" "));
    if (top.length > 0) lines.push(...section(title, summaries(top), paint));
  }
  const families: Entry[] = [
    ["agent", "Run a coding agent; see slipway agent --help"],
    ["sandbox", "Create, use and remove sandboxes; see slipway sandbox --help"],
  ];
  lines.push(
    ...section("Agents and sandboxes", families, paint),
    paint("bold", "Try it"),
    "  slipway doctor                                    check this machine",
    '  slipway build "a habit tracker"                   build an app from a request',
    '  slipway agent run --model scripted/demo "hello"   run an agent, without a key',
    "  id=$(slipway sandbox create)                      create a sandbox without a network",
    "  slipway sandbox exec $id -- sh -c 'echo hello'    run a program in it",
    "  slipway sandbox shell $id                         open a shell in it",
    "  slipway sandbox rm $id                            destroy it",
    "",
    "In the repository, `npm run slipway -- <command>` runs the same program.",
    "Run `slipway help <command>` for the options of a command.",
  );
  return `${lines.join("\n")}\n`;
}

/** All commands that begin with a word, by group. */
export function groupHelp(prefix: string, groups: readonly CommandGroup[], paint: Paint): string {
  const lines = [`${paint("bold", "Usage:")} slipway ${prefix} <command> [options]`, ""];
  for (const { title, commands } of groups) {
    const below = commands.filter(({ name }) => name.startsWith(`${prefix} `));
    const entries = below.map((command): Entry => [usageOf(command).slice(prefix.length + 1), command.summary]);
    if (below.length > 0) lines.push(...section(title, entries, paint));
  }
  if (prefix === "sandbox") {
    lines.push("An <id> is a sandbox's ID, its name, or a unique start or end of the ID.");
  }
  lines.push(`Run \`slipway help ${prefix} <command>\` for its options. Every command accepts --json.`);
  return `${lines.join("\n")}\n`;
}

export function commandHelp(command: Command, paint: Paint): string {
  const { arguments: known = [], options = {}, aliases, notes = [], examples } = command;
  const hasOptions = Object.keys(options).length > 0;
  const lines = [
    `${paint("bold", "Usage:")} slipway ${usageOf(command, hasOptions ? [command.name, "[options]"] : [command.name])}`,
    "",
  ];
  lines.push(`${command.summary}.`, "");
  if (aliases) lines.push(`Also: ${aliases.map((alias) => `slipway ${alias}`).join(", ")}`, "");
  const described = known.map((argument): Entry => [`<${argument.name}>`, argument.help]);
  if (described.length > 0) lines.push(...section("Arguments", described, paint));
  if (hasOptions) lines.push(...section("Options", optionEntries(options), paint));
  lines.push(...section("Global options", optionEntries(globalOptions), paint));
  for (const note of notes) lines.push(...wrapped(note, helpWidth), "");
  if (examples) lines.push(paint("bold", "Examples"), ...examples.map((example) => `  slipway ${example}`), "");
  return lines.join("\n");
}

/** `sandbox exec <id> -- <program> [argument...]` */
function usageOf(command: Command, words = [command.name]): string {
  for (const argument of command.arguments ?? []) {
    const name = `<${argument.name}>${argument.many ? "..." : ""}`;
    words.push(argument.optional ? `[${name}]` : name);
  }
  if (command.takesProgram) words.push("-- <program> [argument...]");
  return words.join(" ");
}

type Entry = readonly [name: string, help: string];

function summaries(commands: readonly Command[]): Entry[] {
  return commands.map(({ name, summary }) => [name, summary]);
}

function optionEntries(options: OptionSpecs): Entry[] {
  return Object.entries(options).map(([name, { short, value, help, default: standard, multiple }]) => {
    const remarks = [...(standard === undefined ? [] : [`default: ${standard}`]), ...(multiple ? ["repeatable"] : [])];
    return [
      `${short ? `-${short}, ` : ""}--${name}${value === undefined ? "" : ` <${value}>`}`,
      remarks.length === 0 ? help : `${help} (${remarks.join("; ")})`,
    ];
  });
}

const helpWidth = 110;

function section(title: string, entries: readonly Entry[], paint: Paint): string[] {
  const width = Math.min(38, Math.max(...entries.map(([name]) => name.length)));
  const lines = entries.flatMap(([name, help]) => {
    const [first = "", ...rest] = wrapped(help, helpWidth - width - 4);
    const indented = rest.map((line) => `${" ".repeat(width + 4)}${line}`);
    return name.length > width
      ? [`  ${name}`, `${" ".repeat(width + 4)}${first}`, ...indented]
      : [`  ${name.padEnd(width)}  ${first}`, ...indented];
  });
  return [paint("bold", title), ...lines, ""];
}

function wrapped(text: string, width: number): string[] {
  return text.match(new RegExp(`\\S.{0,${width - 1}}(?= |$)`, "g")) ?? [text];
}
