import { z } from "zod";

export type Environment = Readonly<Record<string, string | undefined>>;

/** What a program is told by its environment. An empty variable counts as not set. */
export interface ReadEnvironment<T> {
  /** What is right by itself, or a default. Rules between settings are checked on this, so that one run shows every mistake. */
  readonly settings: T;
  readonly given: Readonly<Record<string, string>>;
  /** A sentence for each mistake, with the name of its variable: for `settingsError`. */
  readonly mistakes: readonly string[];
}

/** `schema` has a key for each variable, and takes an environment that sets none of them. */
export function readEnvironment<S extends z.ZodObject>(
  schema: S,
  environment: Environment,
): ReadEnvironment<z.output<S>> {
  const given = Object.fromEntries(
    Object.entries(environment).filter((entry): entry is [string, string] => Boolean(entry[1])),
  );
  const issues = schema.safeParse(given).error?.issues ?? [];
  const wrong = new Set(issues.map(({ path }) => path[0]));
  const usable = Object.fromEntries(Object.entries(given).filter(([name]) => !wrong.has(name)));
  const mistakes = issues.map(({ path, message }) => `${String(path[0])}: ${message}.`);
  return { settings: schema.parse(usable), given, mistakes };
}

const number = (kind: string, pattern: RegExp, min: number, max: number) =>
  z.string().transform((text, context) => {
    const value = Number(text);
    if (pattern.test(text) && value >= min && value <= max) return value;
    context.addIssue({ code: "custom", message: `"${text}" is not a ${kind} from ${min} to ${max}` });
    return z.NEVER;
  });
export const wholeNumber = (min: number, max: number) => number("whole number", /^\d+$/, min, max);
export const decimalNumber = (min: number, max: number) => number("number", /^\d+(\.\d+)?$/, min, max);

/** Of a directory or a file that is Slipway's to make. No files can be kept in a kernel's directory, and Node's recursive mkdir never ends there. */
export const absolutePath = z
  .string()
  .refine((path) => path.startsWith("/"), { error: (issue) => `"${issue.input}" is not an absolute path` })
  .refine((path) => !isKernelPath(path), { error: (issue) => `no files can be kept in "${issue.input}"` });

export function isKernelPath(path: string): boolean {
  return /^\/+(proc|sys)(\/|$)/.test(path);
}
