import { z } from "zod";
import { runCommand } from "../../../system/command.ts";
import { type BuiltinTool, defineTool, type Workplace } from "./tool.ts";

const maxOutputBytes = 32 * 1024;
const defaultSeconds = 120;

export function terminalTool({ workdir, environment, maxCommandMs }: Workplace): BuiltinTool {
  const maxSeconds = Math.max(1, Math.floor(maxCommandMs / 1_000));
  return defineTool({
    name: "terminal",
    kind: "execute",
    description:
      "Runs a command with bash in the working directory and returns its output, including standard error, and its exit " +
      "code. There is no input. Background processes are killed when the command ends.",
    schema: z.object({
      command: z.string().min(1).max(100_000),
      timeoutSeconds: z.number().min(1).max(maxSeconds).default(Math.min(defaultSeconds, maxSeconds)),
    }),
    async run({ command, timeoutSeconds }, { signal }) {
      const timeoutMs = timeoutSeconds * 1_000;
      const ended = await runCommand(command, { directory: workdir, environment, timeoutMs, maxOutputBytes, signal });
      return { text: `${ended.output}\n[${ended.end}]`.trimStart(), ok: ended.ok };
    },
  });
}
