import { commands, groups } from "./commands/table.ts";
import { createContext, type Surroundings } from "./context.ts";
import { parseArguments } from "./input/arguments.ts";
import type { Arguments, Command } from "./input/command.ts";
import { brokenPipeExit, describeFailure, Interrupted, ownFailure, UsageError } from "./input/failure.ts";
import { commandHelp, groupHelp, welcome } from "./input/help.ts";
import { nearest } from "./input/suggest.ts";
import { interruptsOf } from "./interrupts.ts";
import { BrokenPipe, type Io, type Output, openOutput } from "./terminal/io.ts";
import { harmlessLines, type Paint, painter, toJson } from "./terminal/terminal.ts";

/** Runs one command line and returns the exit code. Never throws. */
export async function runProgram(argv: readonly string[], io: Io, surroundings?: Surroundings): Promise<number> {
  const out = openOutput(io.stdout);
  const err = openOutput(io.stderr);
  const json = wantsJson(argv);
  try {
    return await dispatch(argv, io, { out, err, surroundings });
  } catch (error) {
    return await failed(error, err, json, io).catch(() => ownFailure);
  }
}

interface Streams {
  readonly out: Output;
  readonly err: Output;
  readonly surroundings: Surroundings | undefined;
}

async function dispatch(argv: readonly string[], io: Io, { out, err, surroundings }: Streams): Promise<number> {
  const paint = painter(out, io.env);
  const { leading, words } = splitLeading(argv);
  if (leading.includes("--version") || leading.includes("-V") || words[0] === "version") return printVersion(out);
  const wantsHelp = leading.includes("--help") || leading.includes("-h");
  if (words[0] === "help" || (wantsHelp && words.length > 0)) {
    return printHelp(words[0] === "help" ? words.slice(1) : words, out, paint);
  }
  if (words.length === 0) return print(out, welcome(groups, paint));
  const found = findCommand(words);
  if (!found) return printHelp(beforeOptions(words), out, paint);
  const args = parseArguments(found.command, [...leading, ...words.slice(found.length)]);
  if (args.flag("help")) return print(out, commandHelp(found.command, paint));
  return runCommand(found.command, args, io, { out, err, surroundings });
}

async function runCommand(command: Command, args: Arguments, io: Io, streams: Streams): Promise<number> {
  using interrupts = interruptsOf(io);
  await using context = createContext({ io, args, interrupts, ...streams });
  const { run } = await command.load();
  try {
    return (await run(context)) ?? 0;
  } catch (error) {
    // Work that an interrupt cuts short fails in its own words; report the interrupt.
    throw interrupts.signal.aborted ? interrupts.signal.reason : error;
  } finally {
    context.progress.clear();
  }
}

/** Global options may come before the command's name. */
function splitLeading(argv: readonly string[]): { leading: string[]; words: string[] } {
  const first = argv.findIndex((word) => !["--json", "--help", "-h", "--version", "-V"].includes(word));
  const at = first < 0 ? argv.length : first;
  return { leading: argv.slice(0, at), words: argv.slice(at) };
}

function beforeOptions(words: readonly string[]): string[] {
  const option = words.findIndex((word) => word.startsWith("-"));
  return words.slice(0, option < 0 ? words.length : option);
}

/** The longest command name that the line begins with. */
function findCommand(words: readonly string[]): { command: Command; length: number } | undefined {
  for (let length = Math.min(3, words.length); length > 0; length--) {
    const name = words.slice(0, length).join(" ");
    const command = commands.find((entry) => entry.name === name || entry.aliases?.includes(name));
    if (command) return { command, length };
  }
  return undefined;
}

async function printHelp(words: readonly string[], out: Output, paint: Paint): Promise<number> {
  if (words.length === 0) return print(out, welcome(groups, paint));
  const found = findCommand(words);
  if (found) return print(out, commandHelp(found.command, paint));
  const name = words.join(" ");
  if (commands.some((command) => command.name.startsWith(`${name} `))) {
    return print(out, groupHelp(name, groups, paint));
  }
  throw unknownCommand(words);
}

function unknownCommand(words: readonly string[]): UsageError {
  const all = commands.flatMap((command) => [command.name, ...(command.aliases ?? [])]);
  const known = words.filter((_, i) => all.some((name) => name.startsWith(`${words.slice(0, i + 1).join(" ")} `)));
  const typed = words.slice(0, known.length + 1).join(" ");
  const candidates = [...all, "agent", "sandbox", "help", "version"].filter(
    (name) => name.split(" ").length === known.length + 1 || known.length === 0,
  );
  const near = nearest(typed, candidates) ?? nearest(`sandbox ${typed}`, all);
  const help = known.length > 0 ? `slipway ${known.join(" ")} --help` : "slipway help";
  return new UsageError(
    `Unknown command "slipway ${typed}".${near ? ` Did you mean "slipway ${near}"?` : ""}`,
    `Run \`${help}\` for a list of commands.`,
  );
}

async function print(out: Output, text: string): Promise<number> {
  await out.write(text);
  return 0;
}

async function printVersion(out: Output): Promise<number> {
  const { default: manifest } = await import("../package.json", { with: { type: "json" } });
  return print(out, `${manifest.version}\n`);
}

/** Reads the raw words, so that it also holds when the command line has a mistake. */
function wantsJson(argv: readonly string[]): boolean {
  const end = argv.indexOf("--");
  return argv.slice(0, end < 0 ? argv.length : end).includes("--json");
}

async function failed(error: unknown, err: Output, json: boolean, io: Io): Promise<number> {
  if (error instanceof BrokenPipe) return brokenPipeExit;
  const { defect, ...failure } = await describeFailure(error);
  const exitCode = error instanceof Interrupted ? error.exitCode : ownFailure;
  if (json) {
    await err.write(`${toJson({ error: failure })}\n`);
  } else if (error instanceof Interrupted) {
    await err.write("interrupted\n");
  } else {
    const paint = painter(err, io.env);
    const clean = (text: string) => (err.isTerminal ? harmlessLines(text) : text);
    const title = defect ? "internal error: " : "error: ";
    await err.write(`${paint("red", title)}${clean(failure.message)}\n`);
    await err.write(
      `${paint("bold", "what to do:")} ${clean(failure.action)}\n${paint("dim", `code: ${failure.code}`)}\n`,
    );
  }
  if (defect && io.env.SLIPWAY_DEBUG === "1") await err.write(`${stackOf(error)}\n`);
  return exitCode;
}

function stackOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? "" : `\ncaused by: ${stackOf(error.cause)}`;
  return `${error.stack ?? error.message}${cause}`;
}
