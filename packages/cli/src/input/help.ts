import type { Paint } from "../terminal/terminal.ts";
import { globalOptions } from "./arguments.ts";
import type { Command, OptionSpecs } from "./command.ts";

/** `slipway` alone: what there is, and how to try it. */
export function welcome(commands: readonly Command[], paint: Paint): string {
  const top = commands.filter((command) => !command.name.includes(" "));
  const lines = [
    paint("bold", "Slipway runs coding agents, and any untrusted code, in sandboxes that start in milliseconds."),
    "",
    ...section(
      "Commands",
      [
        ["agent", "Run coding agents in sandboxes"],
        ["sandbox", "Create, use and remove sandboxes"],
        ...top.map((command): [string, string] => [command.name, command.summary]),
        ["help [command]", "Print help"],
      ],
      paint,
    ),
    paint("bold", "Try it"),
    "  slipway doctor                                    can this machine run sandboxes?",
    '  slipway build "a habit tracker"                   from a request to an app that runs',
    '  slipway agent run --model scripted/demo "hello"   an agent at work, without a key',
    "  id=$(slipway sandbox create)                      a sandbox, without any network",
    "  slipway sandbox exec $id -- sh -c 'echo hello'    run a program in it",
    "  slipway sandbox shell $id                         look around by hand",
    "  slipway sandbox rm $id                            and it is gone",
    "",
    "In the repository, `npm run slipway -- <command>` runs the same program.",
    `${paint("bold", "More:")} slipway sandbox --help, slipway help agent run`,
  ];
  return `${lines.join("\n")}\n`;
}

/** All commands below a word, by group. */
export function groupHelp(prefix: string, commands: readonly Command[], paint: Paint): string {
  const below = commands.filter((command) => command.name.startsWith(`${prefix} `));
  const groups = [...new Set(below.map((command) => command.group))];
  const lines = [`${paint("bold", "Usage:")} slipway ${prefix} <command> [options]`, ""];
  for (const group of groups) {
    const entries = below
      .filter((command) => command.group === group)
      .map((command): [string, string] => [usageOf(command).slice(prefix.length + 1), command.summary]);
    lines.push(...section(group, entries, paint));
  }
  if (prefix === "sandbox") {
    lines.push(`An <id> is a sandbox's id, the unique beginning of one, or the name it was created with.`);
  }
  lines.push(`Every command takes --json, and --help, which tells its options.`);
  return `${lines.join("\n")}\n`;
}

export function commandHelp(command: Command, paint: Paint): string {
  const lines = [`${paint("bold", "Usage:")} slipway ${usageOf(command)} ${optionsWord(command)}`.trimEnd(), ""];
  lines.push(`${command.summary}.`, "");
  if (command.aliases) lines.push(`Also: ${command.aliases.map((alias) => `slipway ${alias}`).join(", ")}`, "");
  const described = command.arguments.map((argument): [string, string] => [`<${argument.name}>`, argument.help]);
  if (described.length > 0) lines.push(...section("Arguments", described, paint));
  const own = optionEntries(command.options);
  if (own.length > 0) lines.push(...section("Options", own, paint));
  lines.push(...section("For every command", optionEntries(globalOptions), paint));
  for (const note of command.notes ?? []) lines.push(note, "");
  if (command.examples) {
    lines.push(paint("bold", "Examples"), ...command.examples.map((example) => `  slipway ${example}`), "");
  }
  return lines.join("\n");
}

/** `sandbox exec <id> -- <program> [argument...]` */
function usageOf(command: Command): string {
  const words = [command.name];
  for (const argument of command.arguments) {
    const name = `<${argument.name}>${argument.many ? "..." : ""}`;
    words.push(argument.optional ? `[${name}]` : name);
  }
  if (command.program === "required") words.push("-- <program> [argument...]");
  if (command.program === "optional") words.push("[-- <program> [argument...]]");
  return words.join(" ");
}

function optionsWord(command: Command): string {
  return Object.keys(command.options).length > 0 ? "[options]" : "";
}

function optionEntries(options: OptionSpecs): [string, string][] {
  return Object.entries(options).map(([name, spec]) => {
    const short = spec.short ? `-${spec.short}, ` : "";
    const value = spec.value === undefined ? "" : ` <${spec.value}>`;
    return [`${short}--${name}${value}`, `${spec.help}${spec.multiple ? " (may be repeated)" : ""}`];
  });
}

function section(title: string, entries: readonly (readonly [string, string])[], paint: Paint): string[] {
  const width = Math.min(40, Math.max(...entries.map(([name]) => name.length)));
  const lines = entries.map(([name, help]) =>
    name.length > width ? `  ${name}\n  ${" ".repeat(width)}  ${help}` : `  ${name.padEnd(width)}  ${help}`,
  );
  return [paint("bold", title), ...lines, ""];
}
