import { join } from "node:path";
import type { CallContext } from "nice-grpc";
import type { Clock } from "./clock.ts";
import { type Command, startCommand } from "./execs/command.ts";
import { fileToolsPath, startFileTools } from "./execs/file-tools.ts";
import type { Output } from "./execs/output.ts";
import type { Secrets } from "./objects/secrets.ts";
import { found, notFound, refusal } from "./refuse.ts";
import { aborted } from "./sandboxes/logs.ts";
import { waitUntilReady } from "./sandboxes/readiness.ts";
import type { Sandbox } from "./sandboxes/sandbox.ts";
import type { Sandboxes } from "./sandboxes/sandboxes.ts";
import type { Methods } from "./serve.ts";
import type { Tokens } from "./tokens.ts";
import {
  type ExecRequest,
  type ExecStartRequest,
  pipe,
  type ReadRequest,
  stderrDescriptor,
  type TaskRequest,
  type WriteRequest,
  type WriteStreamMessage,
} from "./wire.ts";

export interface RouterParts {
  readonly sandboxes: Sandboxes;
  readonly secrets: Secrets;
  readonly tokens: Tokens;
  readonly clock: Clock;
}

export interface RouterAccess {
  /** The running sandbox of a request, for who has its token. */
  running(request: TaskRequest, context: CallContext): Sandbox;
  /** Also an ended one: its output can still be read. */
  any(request: TaskRequest, context: CallContext): Sandbox;
}

export function routerAccess({ sandboxes, tokens, clock }: RouterParts): RouterAccess {
  const any = ({ taskId }: TaskRequest, { metadata }: CallContext) => {
    const claims = tokens.verify(metadata.get("authorization")?.replace(/^Bearer /, ""));
    if (claims?.task !== taskId) throw refusal("UNAUTHENTICATED", "The router's token is unknown or has expired.");
    const sandbox = sandboxes.ofTask(taskId);
    sandbox.usedAtMs = clock.now();
    return sandbox;
  };
  const running = (request: TaskRequest, context: CallContext) => {
    const sandbox = any(request, context);
    if (sandbox.endedAtMs !== null) throw notFound(`Task ${request.taskId} has finished`);
    return sandbox;
  };
  return { any, running };
}

/** Commands in a sandbox: started once for each id, with output and input at offsets. */
export function execMethods(parts: RouterParts, { any, running }: RouterAccess): Methods {
  const commandOf = async (sandbox: Sandbox, { execId }: ExecRequest) => await found(sandbox.execs, execId, "Exec");
  return {
    async taskExecStart(request: ExecStartRequest, context: CallContext) {
      const sandbox = running(request, context);
      if (request.containerId !== "") throw refusal("UNIMPLEMENTED", "The Modal stand-in has no sidecar containers.");
      const started = sandbox.execs.get(request.execId) ?? start(parts, sandbox, request);
      sandbox.execs.set(request.execId, started);
      await started.catch((error: unknown) => {
        sandbox.execs.delete(request.execId);
        throw error;
      });
      return {};
    },
    async *taskExecStdioRead(request: ReadRequest, context: CallContext) {
      const command = await commandOf(any(request, context), request);
      for await (const data of outputOf(command, request.fileDescriptor).read(request.offset, context.signal))
        yield { data };
    },
    async taskExecStdinWrite(request: WriteRequest, context: CallContext) {
      const { input } = await commandOf(any(request, context), request);
      // The client closes an input of which it has not counted the bytes.
      const offset = request.data.length === 0 ? input.status.numBytesWritten : request.offset;
      await input.write(offset, request.data, request.eof);
      return {};
    },
    async taskExecStdinWriteStream(messages: AsyncIterable<WriteStreamMessage>, context: CallContext) {
      let command: Command | undefined;
      let offset = 0;
      for await (const { start, data, end } of messages) {
        if (start !== undefined) {
          command = await commandOf(any(start, context), start);
          offset = start.offset;
        } else if (command === undefined)
          throw refusal("FAILED_PRECONDITION", "The stream does not begin with a start.");
        else if (data !== undefined) {
          await command.input.write(offset, data, false);
          offset += data.length;
        } else if (end !== undefined) await command.input.write(offset, new Uint8Array(0), true);
      }
      return {};
    },
    taskExecStdinStatus: async (request: ExecRequest, context: CallContext) =>
      (await commandOf(any(request, context), request)).input.status,
    taskExecPoll: async (request: ExecRequest, context: CallContext) =>
      (await commandOf(any(request, context), request)).end ?? {},
    async taskExecWait(request: ExecRequest, context: CallContext) {
      const command = await commandOf(any(request, context), request);
      await Promise.race([command.ended, aborted(context.signal)]);
      return command.end ?? {};
    },
    async sandboxStdinWriteV2(request: Omit<WriteRequest, "execId">, context: CallContext) {
      const { main } = running(request, context);
      if (main === null) throw refusal("FAILED_PRECONDITION", "The sandbox has no command.");
      await main.input.write(request.offset, request.data, request.eof);
      return {};
    },
    async *sandboxStdioReadV2(request: Omit<ReadRequest, "execId">, context: CallContext) {
      const { main, ended } = any(request, context);
      if (main === null) {
        await Promise.race([ended, aborted(context.signal)]);
        return;
      }
      let startingOffset = request.offset;
      for await (const data of outputOf(main, request.fileDescriptor).read(startingOffset, context.signal)) {
        yield { data, startingOffset };
        startingOffset += data.length;
      }
    },
    async sandboxWaitUntilReady(request: TaskRequest & { timeout: number }, context: CallContext) {
      await waitUntilReady(running(request, context), request.timeout * 1000, context.signal);
      return { readyAt: parts.clock.now() / 1000 };
    },
  };
}

function outputOf({ stdout, stderr }: Command, fileDescriptor: number): Output {
  return fileDescriptor === stderrDescriptor.router ? stderr : stdout;
}

async function start({ secrets }: RouterParts, sandbox: Sandbox, request: ExecStartRequest): Promise<Command> {
  const outputDirectory = join(sandbox.directory, request.execId);
  const [program, order = ""] = request.commandArgs;
  if (program === fileToolsPath) return startFileTools(sandbox.box, order, outputDirectory);
  const { ptyInfo } = request;
  const command = await startCommand(sandbox.box, {
    argv: request.commandArgs,
    environment: { ...secrets.environmentOf(request.secretIds, request.secretSources), ...request.env },
    cwd: request.workdir ?? sandbox.workdir,
    timeoutMs: request.timeoutSecs ? request.timeoutSecs * 1000 : null,
    pty: ptyInfo?.enabled === true ? { rows: ptyInfo.winszRows || 24, cols: ptyInfo.winszCols || 80 } : undefined,
    outputDirectory,
    keep: { stdout: request.stdoutConfig === pipe, stderr: request.stderrConfig === pipe },
  });
  // The programs of Modal's own volumes make their writes visible to others with `sync`.
  if (program === "sync") void command.ended.then(() => sandbox.volumes.commit()).catch(() => {});
  return command;
}
