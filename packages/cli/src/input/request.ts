import { isIP } from "node:net";
import type { CreateSandboxInput, CustomImage, InjectedSecret, NetworkPolicyInput } from "@slipway/contract";
import type { Environment } from "../terminal/environment.ts";
import { parseInteger } from "./arguments.ts";
import type { Arguments } from "./command.ts";
import type { Settings } from "./config.ts";
import { UsageError } from "./failure.ts";
import { checkName, nameLabel } from "./resolve.ts";
import { parseMegabytes, parsePairs, splitCommas } from "./values.ts";

export type SandboxChoices = Omit<CreateSandboxInput, "image" | "snapshot" | "user">;

/** What the options of a create or a fork ask for; options that are not given are left out. */
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

/** Lifetime and idle time as asked for or as set, which must not contradict each other. */
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

/** Undefined when no option speaks of the network. */
export function networkPolicy(args: Arguments, environment: Environment): NetworkPolicyInput | undefined {
  const names = splitCommas(args.list("net"));
  const netPorts = ports(args, "net-port");
  const secrets = injectedSecrets(args, environment);
  const forwards = args.list("tunnel").map(tunnel);
  const registries = args.flag("registries");
  if (names.length + secrets.length + forwards.length === 0 && !registries && !netPorts) return undefined;
  const closed = names.includes("none");
  if (closed && (names.length > 1 || registries)) {
    throw new UsageError("--net none can not stand beside other names or --registries.", "Give one or the other.");
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

/** `named`: the image of an argument, where the command has one. */
export function imageChoice(args: Arguments, named?: string): ImageChoice | undefined {
  const base = (named ?? args.text("image")) as CustomImage["base"] | undefined;
  const [apt, npm, pip] = [args.list("apt"), args.list("npm"), args.list("pip")].map(splitCommas);
  const commands = [...args.list("run")];
  if ([apt, npm, pip, commands].every((list) => list?.length === 0)) return base;
  return given({ base, apt: full(apt), npm: full(npm), pip: full(pip), commands: full(commands) });
}

export function choice<T extends string>(args: Arguments, option: string, allowed: readonly T[]): T | undefined {
  const value = args.text(option);
  if (value === undefined) return undefined;
  const found = allowed.find((candidate) => candidate === value);
  if (found === undefined) throw new UsageError(`--${option}: "${value}" is none of ${allowed.join(", ")}.`);
  return found;
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
  // The value is left out of the message: it is a secret.
  if (!host || !header || !value) throw new UsageError("--inject is written host:header=value.");
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
  if (!port || !to) throw new UsageError(`--tunnel: "${text}" is not written port=host:port.`);
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

/** The same object without what is undefined. */
export function given<T extends object>(object: T): Given<T> {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as Given<T>;
}
