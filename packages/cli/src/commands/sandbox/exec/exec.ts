import type { ExecRequestInput } from "@slipway/contract";
import type { Context } from "../../../input/command.ts";
import { UsageError } from "../../../input/failure.ts";
import { given } from "../../../input/request.ts";
import { sandboxOf } from "../../../input/resolve.ts";
import { parsePairs } from "../../../input/values.ts";
import { reportExec } from "./report.ts";

export async function run(context: Context): Promise<number> {
  const { args } = context;
  const [input, terminal, detach] = [args.flag("interactive"), args.flag("tty"), args.flag("detach")];
  if (detach && (input || terminal)) throw new UsageError("--detach excludes -i and -t.", "Give one or the other.");
  if (context.json && terminal) throw new UsageError("--json excludes -t.", "Give one or the other.");
  const wanted = args.durationOrNever("timeout");
  const timeoutMs =
    wanted === undefined ? (terminal || detach ? null : (await context.settings()).execTimeoutMs) : wanted;
  const request = {
    argv: [...args.program],
    stdin: input ? ("open" as const) : ("none" as const),
    timeoutMs,
    background: detach,
    ...surroundings(context, terminal),
  };
  const sandbox = await sandboxOf(context);
  await using exec = await sandbox.exec(request, { signal: context.interrupts.signal });
  if (!detach) return await reportExec(context, exec, { input, terminal, onInterrupt: "forward" });
  await context.result({ execId: exec.id }, `${exec.id}\n`);
  return 0;
}

/** Directory, variables and terminal of a command, from the options. */
export function surroundings(context: Context, terminal: boolean): Pick<ExecRequestInput, "cwd" | "env" | "pty"> {
  const { args, io } = context;
  const env = parsePairs(args.list("env"), "--env", io.env);
  const term = io.env.TERM ?? "xterm-256color";
  return given({
    cwd: args.text("cwd"),
    env: terminal ? { TERM: term, ...env } : env,
    pty: terminal ? context.out.size() : undefined,
  });
}
