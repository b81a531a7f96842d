import { invalid } from "../refuse.ts";

/** One step of an image, from the text of a Dockerfile. */
export type Instruction =
  | { readonly type: "from"; readonly image: string }
  | { readonly type: "run"; readonly argv: readonly string[]; readonly text: string }
  | { readonly type: "environment"; readonly variables: Readonly<Record<string, string>> }
  | { readonly type: "workdir"; readonly path: string }
  | { readonly type: "entrypoint"; readonly argv: readonly string[] };

/** They change nothing that a sandbox of this stand-in shows. */
const ignored = new Set([
  "CMD",
  "LABEL",
  "EXPOSE",
  "ARG",
  "SHELL",
  "MAINTAINER",
  "STOPSIGNAL",
  "HEALTHCHECK",
  "VOLUME",
]);

export function parseDockerfile(commands: readonly string[]): Instruction[] {
  return commands
    .join("\n")
    .split("\n")
    .filter((line) => !line.trimStart().startsWith("#"))
    .join("\n")
    .replace(/\\[ \t]*\n/g, " ")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .flatMap((line) => parseLine(line));
}

function parseLine(line: string): Instruction[] {
  const [, word = "", rest = ""] = /^(\S+)\s*(.*)$/s.exec(line) ?? [];
  const name = word.toUpperCase();
  if (ignored.has(name)) return [];
  switch (name) {
    case "FROM":
      return [{ type: "from", image: rest.replace(/^--\S+\s+/, "").split(/\s+/)[0] ?? "" }];
    case "RUN":
      return [{ type: "run", argv: commandOf(rest), text: rest }];
    case "ENTRYPOINT":
      return [{ type: "entrypoint", argv: commandOf(rest) }];
    case "ENV":
      return [{ type: "environment", variables: variablesOf(rest) }];
    case "WORKDIR":
      return [{ type: "workdir", path: unquote(rest) }];
    case "USER":
      if (rest === "root" || rest === "0") return [];
      throw invalid(`USER ${rest}: the stand-in's images run as root.`);
    case "COPY":
    case "ADD":
      throw invalid(`${name} is not supported: the stand-in's images have no build context.`);
    default:
      throw invalid(`Unknown instruction: ${word}`);
  }
}

/** The exec form is JSON; anything else is a shell's. */
function commandOf(text: string): string[] {
  if (text.startsWith("[")) {
    try {
      const argv: unknown = JSON.parse(text);
      if (Array.isArray(argv) && argv.every((part) => typeof part === "string")) return argv;
    } catch {
      // Not JSON after all.
    }
  }
  return ["/bin/sh", "-c", text];
}

/** `NAME=value NAME2="a value"`, or the old form `NAME a value`. */
function variablesOf(text: string): Record<string, string> {
  const [, old, value] = /^(\w+)\s+([^=]*)$/.exec(text) ?? [];
  if (old !== undefined && value !== undefined) return { [old]: unquote(value.trim()) };
  const pairs = [...text.matchAll(/(\w+)=("(?:[^"\\]|\\.)*"|'[^']*'|(?:[^\s\\]|\\.)*)/g)];
  if (pairs.length === 0) throw invalid(`ENV ${text}: expected NAME=value`);
  return Object.fromEntries(pairs.map(([, name = "", raw = ""]) => [name, unquote(raw)]));
}

function unquote(text: string): string {
  const inner = /^(["'])(.*)\1$/s.exec(text)?.[2] ?? text;
  return inner.replace(/\\(.)/g, "$1");
}
