import { statSync } from "node:fs";
import { isIP } from "node:net";
import { resolve } from "node:path";
import type { CreateSandboxInput, CustomImage, InjectedSecret, NetworkPolicyInput } from "@slipway/contract";
import type { Environment } from "../terminal/environment.ts";
import { parseInteger } from "./arguments.ts";
import type { Arguments } from "./command.ts";
import type { Settings } from "./config.ts";
import { UsageError } from "./failure.ts";
import { checkName, nameLabel } from "./resolve.ts";
import { parseMegabytes, parsePairs, splitCommas } from "./values.ts";

export type SandboxChoices = Omit<CreateSandboxInput, "image" | "snapshot" | "user">;

/** What the options of a create or a fork ask for; omits options that are not given. */
export function sandboxChoices(args: Arguments, environment: Environment): SandboxChoices {
  const network = networkPolicy(args, environment);
  const name = args.text("name");
  const labels = parsePairs(args.list("label"), "--label");
  return given({
    cpu: args.decimal("cpu"),
    memoryMb: megabytes(args, "memory"),
    diskMb: megabytes(args, "disk"),
    processes: args.integer("processes", { min: 1, max: 1_000_000 }),
    lifetimeMs: args.durationMs("lifetime"),
    idleMs: args.durationOrNever("idle"),
    sleepingMs: args.durationMs("sleeping"),
    checkpointMs: args.durationOrNever("checkpoint"),
    expiringGraceMs: args.durationMs("grace"),
    onEnd: choice(args, "on-end", ["stop", "destroy"]),
    network,
    env: filled(parsePairs(args.list("env"), "--env", environment)),
    secrets: filled(parsePairs(args.list("secret"), "--secret", environment)),
    ports: ports(args, "port"),
    workdir: args.text("workdir"),
    labels: filled(name === undefined ? labels : { ...labels, [nameLabel]: checkName(name) }),
    gpu: args.text("gpu"),
    idempotencyKey: args.text("idempotency-key"),
  });
}

/** Lifetime and idle time from options or settings; throws if they contradict each other. */
export function timeChoices(
  choices: SandboxChoices,
  settings: Settings,
): { lifetimeMs: number; idleMs: number | null } {
  const lifetimeMs = choices.lifetimeMs ?? settings.lifetimeMs;
  const { idleMs } = choices;
  if (typeof idleMs === "number" && idleMs > lifetimeMs) {
    throw new UsageError(
      "--idle is longer than the lifetime: the sandbox would never sleep.",
      "Choose a shorter --idle, a longer --lifetime, or --idle never.",
    );
  }
  return { lifetimeMs, idleMs: idleMs === undefined ? Math.min(settings.idleMs, lifetimeMs) : idleMs };
}

/** Undefined if no network option is given. */
export function networkPolicy(args: Arguments, environment: Environment): NetworkPolicyInput | undefined {
  const names = splitCommas(args.list("net"));
  const netPorts = ports(args, "net-port");
  const secrets = injectedSecrets(args, environment);
  const forwards = args.list("tunnel").map(tunnel);
  const registries = args.flag("registries");
  if (names.length + secrets.length + forwards.length === 0 && !registries && !netPorts) return undefined;
  const closed = names.includes("none");
  if (closed && (names.length > 1 || registries)) {
    throw new UsageError("--net none cannot be combined with other names or --registries.", "Give one or the other.");
  }
  const reachable = closed ? [] : names;
  const isRange = (name: string) => name.includes("/") || isIP(name) > 0;
  return {
    domains: reachable.filter((name) => !isRange(name)),
    cidrs: reachable.filter(isRange).map(asRange),
    registries,
    ...given({
      ports: netPorts,
      secrets: secrets.length ? secrets : undefined,
      forwards: forwards.length ? forwards : undefined,
    }),
  };
}

export function injectedSecrets(args: Arguments, environment: Environment): InjectedSecret[] {
  return args.list("inject").map((text) => injected(text, environment));
}

export type ImageChoice = CustomImage["base"] | Partial<CustomImage>;

/** `named`: the image argument, for commands that have one. */
export function imageChoice(args: Arguments, named?: string): ImageChoice | undefined {
  const base = (named ?? args.text("image")) as CustomImage["base"] | undefined;
  const [apt, npm, pip] = [args.list("apt"), args.list("npm"), args.list("pip")].map(splitCommas);
  const commands = [...args.list("run")];
  if ([apt, npm, pip, commands].every((list) => list?.length === 0)) return base;
  return given({ base, apt: full(apt), npm: full(npm), pip: full(pip), commands: full(commands) });
}

export function choice<T extends string>(args: Arguments, option: string, allowed: readonly T[]): T | undefined {
  const value = args.text(option);
  return value === undefined ? undefined : oneOf(allowed, value, `--${option}`);
}

export function oneOf<T extends string>(allowed: readonly T[], text: string, what: string): T {
  const found = allowed.find((candidate) => candidate === text);
  if (found === undefined) throw new UsageError(`${what}: "${text}" is not one of ${allowed.join(", ")}.`);
  return found;
}

/** `--dir` or `--repo`, of which one is given at most. */
export function sourceChoice(args: Arguments): { directory?: string; repository?: string } {
  const [directory, repository] = [args.text("dir"), args.text("repo")];
  if (directory !== undefined && repository !== undefined) {
    throw new UsageError("--dir cannot be combined with --repo.", "Give one or the other.");
  }
  return given({ directory, repository });
}

/** The absolute path of an existing directory. */
export function directoryAt(path = "."): string {
  const absolute = resolve(path);
  const found = statSync(absolute, { throwIfNoEntry: false });
  if (found?.isDirectory()) return absolute;
  const wrong = found ? `${absolute} is not a directory.` : `There is no directory ${absolute}.`;
  throw new UsageError(wrong, "Name a directory with --dir, or a repository with --repo.");
}

export const portRange = { min: 1, max: 65_535 };

function ports(args: Arguments, option: string): number[] | undefined {
  return full(splitCommas(args.list(option)).map((port) => parseInteger(port, `--${option}`, portRange)));
}

function megabytes(args: Arguments, option: string): number | undefined {
  const value = args.text(option);
  return value === undefined ? undefined : parseMegabytes(value, `--${option}`);
}

function asRange(name: string): string {
  if (name.includes("/")) return name;
  return isIP(name) === 4 ? `${name}/32` : `${name}/128`;
}

function injected(text: string, environment: Environment) {
  const match = /^(?:(https?):\/\/)?([^:=]+):([^:=]+)=(.+)$/s.exec(text);
  const [, scheme, host, header, value] = match ?? [];
  // The message omits the value: it is a secret.
  if (!host || !header || !value) throw new UsageError("--inject must have the form host:header=value.");
  const secret = { host, header, value, ...(scheme && { scheme: scheme as "https" | "http" }) };
  const variable = /^env:(.+)$/.exec(value)?.[1];
  if (variable === undefined) return secret;
  const found = environment[variable];
  if (!found) throw new UsageError(`--inject: ${variable} is not set in this environment.`);
  return { ...secret, value: found };
}

function tunnel(text: string) {
  const match = /^(\d+)=(.+:\d+)$/.exec(text);
  const [, port, to] = match ?? [];
  if (!port || !to) throw new UsageError(`--tunnel: "${text}" must have the form port=host:port.`);
  return { port: parseInteger(port, "--tunnel", portRange), to };
}

function full<T>(list: T[] | undefined): T[] | undefined {
  return list && list.length > 0 ? list : undefined;
}

function filled(record: Record<string, string>): Record<string, string> | undefined {
  return Object.keys(record).length > 0 ? record : undefined;
}

type Given<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/** The same object without undefined fields. */
export function given<T extends object>(object: T): Given<T> {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as Given<T>;
}
