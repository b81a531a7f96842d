import { parseArgs } from "node:util";
import type { Arguments, Command, OptionSpecs } from "./command.ts";
import { parseDurationMs } from "./duration.ts";
import { UsageError } from "./failure.ts";
import { nearest } from "./suggest.ts";

export const globalOptions: OptionSpecs = {
  json: { help: "Print JSON" },
  help: { short: "h", help: "Print this help" },
};

type Values = ReadonlyMap<string, readonly (string | true)[]>;

export function parseArguments(command: Command, words: readonly string[]): Arguments {
  const options = { ...command.options, ...globalOptions };
  const { head, program } = command.takesProgram ? splitProgram(command, options, words) : { head: words, program: [] };
  const { values, positionals } = parseOptions(command, options, head);
  if (!values.has("help")) checkPositionals(command, positionals, program);
  return accessors(command, options, values, positionals, program);
}

/** Options may come before or after the arguments; what follows `--` or the last argument belongs to the program. */
function splitProgram(command: Command, options: OptionSpecs, words: readonly string[]) {
  const takesValue = (word: string) =>
    Object.entries(options).some(
      ([name, spec]) => spec.value !== undefined && (word === `--${name}` || word === `-${spec.short}`),
    );
  const argumentCount = command.arguments?.length ?? 0;
  let seen = 0;
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? "";
    if (word === "--") return { head: words.slice(0, i), program: words.slice(i + 1) };
    if (word.startsWith("-") && word.length > 1) {
      if (takesValue(word)) i++;
    } else if (++seen > argumentCount) {
      return { head: words.slice(0, i), program: words.slice(i) };
    }
  }
  return { head: words, program: [] };
}

function parseOptions(command: Command, options: OptionSpecs, words: readonly string[]) {
  const { tokens, positionals } = parseArgs({
    args: [...words],
    options: Object.fromEntries(
      Object.entries(options).map(([name, spec]) => [
        name,
        {
          type: spec.value === undefined ? ("boolean" as const) : ("string" as const),
          multiple: spec.multiple === true,
          ...(spec.short && { short: spec.short }),
        },
      ]),
    ),
    strict: false,
    tokens: true,
    allowPositionals: true,
  });
  const values = new Map<string, (string | true)[]>();
  for (const token of tokens) {
    if (token.kind !== "option") continue;
    const spec = Object.hasOwn(options, token.name) ? options[token.name] : undefined;
    if (!spec) throw unknownOption(command, options, token.rawName);
    const value = spec.value === undefined ? switchValue(token) : optionValue(token, spec.value);
    const earlier = values.get(token.name);
    if (earlier && spec.value !== undefined && !spec.multiple) {
      throw new UsageError(`${token.rawName} is given twice.`, "Give it once.");
    }
    values.set(token.name, [...(earlier ?? []), value]);
  }
  return { values, positionals };
}

interface OptionToken {
  readonly rawName: string;
  readonly value?: string | undefined;
  readonly inlineValue?: boolean | undefined;
}

function switchValue(token: OptionToken): true {
  if (token.value !== undefined) throw new UsageError(`${token.rawName} takes no value.`);
  return true;
}

function optionValue(token: OptionToken, placeholder: string): string {
  const value = token.value;
  const missing = value === undefined || (!token.inlineValue && value.startsWith("-") && value.length > 1);
  if (!missing) return value;
  const hint = value === undefined ? "" : ` Write a value that begins with a dash as ${token.rawName}=${value}.`;
  throw new UsageError(`${token.rawName} needs a value: ${placeholder}.${hint}`);
}

function unknownOption(command: Command, options: OptionSpecs, rawName: string): UsageError {
  const near = nearest(rawName.replace(/^-+/, ""), Object.keys(options));
  const dashes = command.takesProgram ? " Put `--` before a program that has options of its own." : "";
  return new UsageError(
    `slipway ${command.name} has no option ${rawName}.${near ? ` Did you mean --${near}?` : ""}`,
    `See slipway help ${command.name}.${dashes}`,
  );
}

function checkPositionals(command: Command, positionals: readonly string[], program: readonly string[]): void {
  const known = command.arguments ?? [];
  const missing = known.filter((argument) => !argument.optional)[positionals.length];
  const usage = `See slipway help ${command.name}.`;
  if (missing) throw new UsageError(`<${missing.name}> is missing: ${missing.help}.`, usage);
  const most = known.at(-1)?.many ? Number.POSITIVE_INFINITY : known.length;
  if (positionals.length > most) throw new UsageError(`"${positionals[most]}" is one argument too many.`, usage);
  if (command.takesProgram && program.length === 0) {
    const example = `slipway ${command.name} ${positionals[0] ?? "<id>"} -- ls -la`;
    throw new UsageError("The program to run is missing.", `Write it after \`--\`: ${example}`);
  }
}

function accessors(
  command: Command,
  options: OptionSpecs,
  values: Values,
  positionals: readonly string[],
  program: readonly string[],
): Arguments {
  const all = (option: string) => {
    if (!Object.hasOwn(options, option)) throw new Error(`${command.name} does not declare --${option}`);
    return values.get(option) ?? [];
  };
  const text = (option: string) => {
    const value = all(option)[0];
    return typeof value === "string" ? value : undefined;
  };
  const index = (name: string) => command.arguments?.findIndex((argument) => argument.name === name) ?? -1;
  const durationMs = (option: string) => convert(text(option), (value) => parseDurationMs(value, `--${option}`));
  return {
    flag: (option) => all(option).length > 0,
    text,
    list: (option) => all(option).filter((value) => value !== true),
    integer: (option, range) => convert(text(option), (value) => parseInteger(value, `--${option}`, range)),
    decimal: (option) => convert(text(option), (value) => parseDecimal(value, `--${option}`)),
    durationMs,
    durationOrNever: (option) => (text(option) === "never" ? null : durationMs(option)),
    argument: (name) => positionals[index(name)] ?? "",
    optional: (name) => positionals[index(name)],
    many: (name) => positionals.slice(index(name)),
    program,
  };
}

function convert<T>(value: string | undefined, parse: (value: string) => T): T | undefined {
  return value === undefined ? undefined : parse(value);
}

export function parseInteger(value: string, what: string, range: { min: number; max: number }): number {
  const number = Number(value);
  if (!/^\d+$/.test(value) || number < range.min || number > range.max) {
    throw new UsageError(`${what}: "${value}" is not a whole number from ${range.min} to ${range.max}.`);
  }
  return number;
}

function parseDecimal(value: string, what: string): number {
  if (!/^\d+(\.\d+)?$/.test(value)) throw new UsageError(`${what}: "${value}" is not a number.`);
  return Number(value);
}
