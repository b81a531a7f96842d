import type { ExecRequestInput } from "@slipway/contract";
import type { Context } from "../../../input/command.ts";
import { UsageError } from "../../../input/failure.ts";
import { given } from "../../../input/request.ts";
import { findExecId, sandboxOf } from "../../../input/resolve.ts";
import { parsePairs } from "../../../input/values.ts";
import { reportExec } from "./report.ts";

export async function run(context: Context): Promise<number> {
  const { args } = context;
  const [input, terminal, detach] = [args.flag("interactive"), args.flag("tty"), args.flag("detach")];
  if (detach && (input || terminal))
    throw new UsageError("--detach cannot be combined with -i or -t.", "Give one or the other.");
  refuseJsonTerminal(context);
  const wanted = args.durationOrNever("timeout");
  const timeoutMs =
    wanted === undefined ? (terminal || detach ? null : (await context.settings()).execTimeoutMs) : wanted;
  const request = {
    argv: [...args.program],
    stdin: input ? ("open" as const) : ("none" as const),
    timeoutMs,
    background: detach,
    ...placeOf(context, terminal),
  };
  const sandbox = await sandboxOf(context);
  await using exec = await sandbox.exec(request, { signal: context.interrupts.signal });
  if (!detach) return await reportExec(context, exec, { input, terminal, onInterrupt: "forward" });
  await context.result({ execId: exec.id }, `${exec.id}\n`);
  return 0;
}

const bashOrSh = "if command -v bash >/dev/null 2>&1; then exec bash; else exec sh; fi";

/** On a terminal an interactive shell; otherwise a shell that reads its commands from standard input. */
export async function shell(context: Context): Promise<number> {
  if (context.json) throw new UsageError("A shell has no JSON output.", "Use slipway sandbox exec --json.");
  const terminal = context.io.stdin.isTTY === true && context.out.isTerminal;
  const request = {
    argv: ["sh", "-c", bashOrSh],
    stdin: "open" as const,
    timeoutMs: null,
    ...placeOf(context, terminal),
  };
  const sandbox = await sandboxOf(context);
  await using exec = await sandbox.exec(request, { signal: context.interrupts.signal });
  return await reportExec(context, exec, { input: true, terminal, onInterrupt: "forward" });
}

const byteRange = { min: 0, max: Number.MAX_SAFE_INTEGER };

export async function attach(context: Context): Promise<number> {
  const { args } = context;
  const [input, terminal] = [args.flag("interactive"), args.flag("tty")];
  refuseJsonTerminal(context);
  const from = {
    stdout: args.integer("from-stdout", byteRange) ?? 0,
    stderr: args.integer("from-stderr", byteRange) ?? 0,
  };
  const { signal } = context.interrupts;
  const sandbox = await sandboxOf(context);
  const id = await findExecId(sandbox, args.argument("exec-id"), signal);
  await using exec = await sandbox.attach(id, { from, signal });
  return await reportExec(context, exec, { input, terminal, onInterrupt: "detach" });
}

function refuseJsonTerminal({ args, json }: Context): void {
  if (json && args.flag("tty")) throw new UsageError("--json cannot be combined with -t.", "Give one or the other.");
}

/** Directory, variables and terminal of a program, from the options. */
function placeOf(context: Context, terminal: boolean): Pick<ExecRequestInput, "cwd" | "env" | "pty"> {
  const { args, io } = context;
  const env = parsePairs(args.list("env"), "--env", io.env);
  const term = io.env.TERM ?? "xterm-256color";
  return given({
    cwd: args.text("cwd"),
    env: terminal ? { TERM: term, ...env } : env,
    pty: terminal ? context.out.size() : undefined,
  });
}
