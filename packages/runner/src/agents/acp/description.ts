import { isAbsolute } from "node:path";
import { z } from "zod";

/** Placeholders that a description may use, as in `{model}`. `base_url` is the gateway's address, without `/v1`. */
const placeholders = ["base_url", "token", "model"] as const;
type Values = Readonly<Record<(typeof placeholders)[number], string>>;

const known = placeholders.map((name) => `{${name}}`).join(", ");

const text = (maxChars: number) =>
  z
    .string()
    .max(maxChars)
    .refine((value) => !value.includes("\0"), "has a NUL")
    .superRefine((value, context) => {
      for (const name of namesIn(value)) {
        if (!(placeholders as readonly string[]).includes(name))
          context.addIssue(`there is no {${name}}, but ${known}`);
      }
    });

const program = text(1024)
  .min(1)
  .refine(
    (path) => !isAbsolute(path) && !path.split("/").includes(".."),
    "expected a file of the agent's directory, or the name of a program in PATH",
  )
  .refine((path) => namesIn(path).length === 0, "a program's name has no placeholders");

const argument = text(4096).refine(
  (word) => !namesIn(word).includes("token"),
  "every process sees arguments: {token} belongs into the environment",
);

/** How to start an ACP agent so that it finds its models at the gateway and nowhere else. */
export const descriptionSchema = z.strictObject(
  {
    command: z.tuple([program], argument).refine((words) => words.length <= 64, "expected up to 64 words"),
    environment: z
      .record(z.string(), text(16 * 1024))
      .refine((variables) => Object.keys(variables).length <= 64, "expected up to 64 variables")
      .superRefine((variables, context) => {
        const used = Object.values(variables).flatMap(namesIn);
        for (const name of ["base_url", "token"]) {
          if (!used.includes(name)) context.addIssue(`no variable has {${name}}: the agent would not find its models`);
        }
        for (const [variable, value] of Object.entries(variables)) {
          const wrong = mistakeIn(variable, value);
          if (wrong !== undefined) context.addIssue(`${variable.slice(0, 128)}: ${wrong}`);
        }
      }),
  },
  { error: ({ code }) => (code === "invalid_type" ? 'expected {"command": [...], "environment": {...}}' : undefined) },
);
export type Description = z.output<typeof descriptionSchema>;

/** The message does not repeat the value: it may be a key. */
function mistakeIn(variable: string, value: string): string | undefined {
  if (!/^[A-Za-z_][A-Za-z0-9_]{0,127}$/.test(variable)) return "this is not the name of a variable";
  if (variable === "HOME" || variable.startsWith("SLIPWAY_")) return "Slipway sets it";
  const looksSecret = /(KEY|TOKEN|SECRET|PASSWORD)$/i.test(variable);
  return looksSecret && value !== "{token}" ? "expected {token}: a sandbox holds no key" : undefined;
}

export function fill(value: string, values: Values): string {
  return value.replace(pattern, (_, name: keyof Values) => values[name]);
}

/** Only bare words in braces: settings in JSON can be a value. */
const pattern = /\{([a-z_]+)\}/g;

function namesIn(value: string): string[] {
  return [...value.matchAll(pattern)].map(([, name = ""]) => name);
}
