import { createSandboxSchema, SlipwayError } from "@slipway/contract";
import type { z } from "zod";
import { formatDuration } from "./duration.ts";

interface Option {
  readonly name: string;
  /** Formats its numbers. */
  readonly show?: (value: number) => string;
}

const megabytes = (value: number) => `${value} MB`;

/** The option behind each field of a request. */
const options: Readonly<Record<string, Option>> = {
  cpu: { name: "--cpu" },
  memoryMb: { name: "--memory", show: megabytes },
  diskMb: { name: "--disk", show: megabytes },
  processes: { name: "--processes" },
  lifetimeMs: { name: "--lifetime", show: formatDuration },
  idleMs: { name: "--idle", show: formatDuration },
  sleepingMs: { name: "--sleeping", show: formatDuration },
  checkpointMs: { name: "--checkpoint", show: formatDuration },
  expiringGraceMs: { name: "--grace", show: formatDuration },
  workdir: { name: "--workdir" },
  env: { name: "--env" },
  secrets: { name: "--secret" },
  ports: { name: "--port" },
  labels: { name: "--label" },
  idempotencyKey: { name: "--idempotency-key" },
  "network.domains": { name: "--net" },
  "network.cidrs": { name: "--net" },
  "network.ports": { name: "--net-port" },
  "network.secrets": { name: "--inject" },
  "network.forwards": { name: "--tunnel" },
};

/** Runs a call with a request that was made of options. A refusal names the options, not the fields. */
export async function inOptions<T>(request: object, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    const text = error instanceof SlipwayError && error.status === 400 ? mistakesOf(request) : null;
    throw text === null ? error : new SlipwayError((error as SlipwayError).code, text, { cause: error });
  }
}

/** Null if no field is wrong, or if a wrong field has no option. */
function mistakesOf(request: object): string | null {
  const { error } = createSandboxSchema.safeParse(request);
  const mistakes = error?.issues.map((issue) => mistake(issue, request)) ?? [null];
  return mistakes.includes(null) ? null : [...new Set(mistakes)].join(" ");
}

type Issue = z.core.$ZodIssue;

function mistake(issue: Issue, request: object): string | null {
  const option = options[issue.path.slice(0, 2).join(".")] ?? options[String(issue.path[0])];
  if (option === undefined) return null;
  const { name, show = String } = option;
  const value = issue.path.reduce<unknown>((part, key) => (part as Record<PropertyKey, unknown>)?.[key], request);
  if (typeof value === "number" && issue.code === "too_small")
    return `${name}: ${show(value)} is less than ${show(Number(issue.minimum))}.`;
  if (typeof value === "number" && issue.code === "too_big")
    return `${name}: ${show(value)} is more than ${show(Number(issue.maximum))}.`;
  // Never show the values of secrets.
  const shown = typeof value === "string" && name.startsWith("--net") ? `"${value}": ` : "";
  return `${name}: ${shown}${issue.message}.`;
}
