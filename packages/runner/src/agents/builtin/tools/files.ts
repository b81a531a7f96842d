import { mkdir, open, readFile, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { z } from "zod";
import { keepEndsOf } from "../../../system/output.ts";
import { pathInside } from "./paths.ts";
import { type BuiltinTool, defineTool, type ToolOutcome, type Workplace } from "./tool.ts";

const maxFileBytes = 2 * 1024 * 1024;
const maxAnswerBytes = 64 * 1024;

const path = z.string().min(1).max(4_096);
const edit = z.object({
  find: z.string().min(1).describe("Text that occurs exactly once in the file"),
  replace: z.string(),
});

export function createOrUpdateFilesTool({ workdir }: Workplace): BuiltinTool {
  return defineTool({
    name: "createOrUpdateFiles",
    kind: "edit",
    description:
      "Writes files. `content` sets the whole file, new or not; `edits` replace text in an existing file. " +
      "Creates directories as needed.",
    schema: z.object({
      files: z
        .array(z.object({ path, content: z.string().max(maxFileBytes).optional(), edits: z.array(edit).optional() }))
        .min(1)
        .max(50),
    }),
    async run({ files }) {
      // Computes all edits before the first write, so that a wrong one leaves nothing half done.
      const written = await Promise.all(files.map(async (file) => ({ ...file, text: await newText(workdir, file) })));
      for (const file of written) {
        const absolute = pathInside(workdir, file.path);
        await mkdir(dirname(absolute), { recursive: true });
        await writeFile(absolute, file.text);
      }
      return { text: `Written: ${files.map((file) => file.path).join(", ")}`, ok: true };
    },
  });
}

interface FileChange {
  readonly path: string;
  readonly content?: string | undefined;
  readonly edits?: readonly z.output<typeof edit>[] | undefined;
}

async function newText(workdir: string, change: FileChange): Promise<string> {
  const absolute = pathInside(workdir, change.path);
  if ((change.content === undefined) === (change.edits === undefined)) {
    throw new Error(`${change.path}: give either content or edits.`);
  }
  if (change.content !== undefined) return change.content;
  let text = await readFile(absolute, "utf8");
  for (const { find, replace } of change.edits ?? []) {
    const parts = text.split(find);
    if (parts.length !== 2) {
      throw new Error(
        `${change.path}: the text to find occurs ${parts.length - 1} times, not once. No file was written.`,
      );
    }
    text = parts.join(replace);
  }
  return text;
}

export function readFilesTool({ workdir }: Workplace): BuiltinTool {
  return defineTool({
    name: "readFiles",
    kind: "read",
    description: "Reads text files, whole or some lines of each.",
    schema: z.object({
      paths: z.array(path).min(1).max(50),
      fromLine: z.int().min(1).default(1),
      lineCount: z.int().min(1).default(2_000),
    }),
    async run({ paths, fromLine, lineCount }) {
      const shareBytes = Math.floor(maxAnswerBytes / paths.length);
      const read = async (name: string): Promise<ToolOutcome> => {
        try {
          return { text: await readLines(workdir, name, fromLine, lineCount, shareBytes), ok: true };
        } catch (error) {
          return { text: error instanceof Error ? error.message : String(error), ok: false };
        }
      };
      const outcomes = await Promise.all(paths.map(read));
      const texts = outcomes.map(({ text }, index) => (paths.length === 1 ? text : `=== ${paths[index]}\n${text}`));
      return { text: texts.join("\n"), ok: outcomes.every(({ ok }) => ok) };
    },
  });
}

async function readLines(workdir: string, name: string, fromLine: number, lineCount: number, maxBytes: number) {
  await using file = await open(pathInside(workdir, name));
  const { size } = await file.stat();
  const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(Math.min(size, maxFileBytes)) });
  if (buffer.includes(0)) return `[not text: ${size} bytes of binary data]`;
  const lines = buffer.toString("utf8", 0, bytesRead).split("\n");
  const text = keepEndsOf(lines.slice(fromLine - 1, fromLine - 1 + lineCount).join("\n"), maxBytes);
  const lastLine = fromLine - 1 + lineCount;
  const notes = [
    ...(lastLine < lines.length ? [`[lines ${fromLine} to ${lastLine} of ${lines.length}]`] : []),
    ...(size > bytesRead ? [`[only the first ${bytesRead} of ${size} bytes were looked at]`] : []),
  ];
  return [text, ...notes].join("\n");
}
